// Drawings follow the reader's choice of light or dark pages. They are drawn in the colours of a
// light page; a style sheet inside the drawing replaces those where the reader prefers dark ones,
// in a page as in a file of its own. A viewer that knows no style sheets shows the light drawing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

struct ThemedColour {
  std::string light, dark;  // "#rrggbb" in lower case
};

constexpr const char* light_paper = "#ffffff";
constexpr const char* dark_paper = "#15181c";

// The <style> element for those of the colours of our drawings, and of `more`, that are the value
// of an attribute fill, stroke or color in `drawing`; "" for none.
std::string dark_mode_style(std::string_view drawing, const std::vector<ThemedColour>& more = {});

// `share` of the colour, the rest of `paper`.
std::string mixed_colour(const std::string& colour, const std::string& paper, double share);

// How far a line's colour is mixed with the paper for what lies behind it.
constexpr double whisker_share = 0.5, published_share = 0.7;

}  // namespace posattn

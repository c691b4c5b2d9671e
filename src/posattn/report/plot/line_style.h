// How lines look. The hue says which architecture a line belongs to (line_styles.inc); shade, dash
// and marker tell variants of one architecture apart, such as depths.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

enum class Shade { palest, pale, plain, dark, darkest };

// A number that stands for a hue and a shade. m0 and m5 are other names of standard and positional;
// a name without a hue of its own has that of a baseline.
int style_of(std::string_view architecture, Shade shade = Shade::plain);
int in_shade(int style, Shade shade);
int variant_style(std::string_view architecture, size_t variant);  // 0: the plain one
constexpr int line_style_count = 16 * 5;  // then styles repeat, with other dashes and markers

// The styles of the lines of one figure. Variants of an architecture go from pale to dark where
// they differ in depth; else the first of them is plain.
struct StyledLine {
  std::string architecture;
  double depth = 0;
};
std::vector<int> styles_of(const std::vector<StyledLine>& lines);
// The same for labels that begin with an architecture's name, as "standard (tf32)"; others are
// baselines.
std::vector<int> styles_of_labels(const std::vector<std::string>& labels);

// How a style looks; dash and markers in gnuplot's terms.
struct LineStyle {
  std::string colour, dark_colour;  // "#rrggbb", on light and on dark paper
  const char* dash;
  int marker, open_marker;
};
LineStyle line_style(int style);

// The colour of a style on light paper.
std::string style_colour(int style);

}  // namespace posattn

// Text in a drawing, where nothing measures letters: widths are estimates on the wide side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// The size of the captions of our pages (page/page_parts.cc), in pixels. Drawings are laid out for
// the widths at which pages show them and never made smaller, so that this is what a reader gets.
constexpr double drawing_text_size = 14.4;

// The width in the unit of `size`.
double text_width(std::string_view text, double size);

// Breaks the text at spaces into lines that fit; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, double size, double width);

}  // namespace posattn

// Text for SVG and HTML: everything that comes from outside goes through escape_markup, or through
// valid_text where another program escapes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// Safe as element content and inside quoted attributes, in XML 1.0 and HTML: the five special
// characters become entities; control characters and bytes that are not UTF-8 become U+FFFD.
std::string escape_markup(std::string_view text);

// Text that XML 1.0 can hold, without entities.
std::string valid_text(std::string_view text);

// In a drawing nothing measures letters: widths are estimates on the wide side.

// The size of the captions of our pages (page/page_parts.cc), in pixels. Drawings are laid out for
// the widths at which pages show them and never made smaller, so that this is what a reader gets.
constexpr double drawing_text_size = 14.4;

// The width in the unit of `size`.
double text_width(std::string_view text, double size);

// Breaks the text at spaces into lines that fit; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, double size, double width);

}  // namespace posattn

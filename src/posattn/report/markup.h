// Text for SVG and HTML: everything that comes from outside goes through escape_markup, or through
// valid_text where another program escapes it.
#pragma once

#include <string>
#include <string_view>

namespace posattn {

// Safe as element content and inside quoted attributes, in XML 1.0 and HTML: the five special
// characters become entities; control characters and bytes that are not UTF-8 become U+FFFD.
std::string escape_markup(std::string_view text);

// Text that XML 1.0 can hold, without entities.
std::string valid_text(std::string_view text);

}  // namespace posattn

// Characters in UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace posattn {

// Bytes of the well-formed character at the start of `text` (which is not empty), or 0 where it is
// broken: cut off, overlong, a surrogate or beyond U+10FFFF.
size_t utf8_size(std::string_view text);

// The place of the first byte that belongs to no well-formed character, or npos.
size_t find_broken_utf8(std::string_view text);

}  // namespace posattn

#include "posattn/base/utf8.h"

#include <cstdint>

namespace posattn {

size_t utf8_size(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  uint32_t point = lead & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0U) != 0x80) return 0;
    point = point << 6U | (byte & 0x3fU);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point >= smallest[size] && point <= 0x10ffff && !surrogate ? size : 0;
}

size_t find_broken_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

}  // namespace posattn

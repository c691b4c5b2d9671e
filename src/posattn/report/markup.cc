#include "posattn/report/markup.h"

#include <cstdint>

namespace posattn {
namespace {

// Bytes of the well-formed character at the start of `text` (never empty), or 0 when it is broken
// or a character that XML 1.0 forbids.
size_t character_size(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) {
    const bool allowed = lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r';
    return allowed && lead != 0x7f ? 1 : 0;
  }
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
  const bool allowed = point >= smallest[size] && point <= 0x10ffff && !surrogate &&
                       point != 0xfffe && point != 0xffff;
  return allowed ? size : 0;
}

}  // namespace

std::string valid_text(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    valid += size == 0 ? "\xef\xbf\xbd" : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

std::string escape_markup(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : valid_text(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
        break;
    }
  }
  return escaped;
}

}  // namespace posattn

#include "posattn/text/byte_characters.h"

#include <array>
#include <cstdint>

namespace posattn {
namespace {

constexpr int first_other = 0x100;

constexpr bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<uint16_t, 256> characters = [] {
  std::array<uint16_t, 256> table{};
  int next = first_other;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = static_cast<uint16_t>(prints(byte) ? byte : next++);
  }
  return table;
}();

constexpr int count = characters[0xad] + 1;  // the last byte that does not print

constexpr std::array<int, count> bytes_of = [] {
  std::array<int, count> table{};
  for (int& byte : table) byte = -1;
  for (int byte = 0; byte < 256; ++byte) table[characters[byte]] = byte;
  return table;
}();

}  // namespace

std::string bytes_to_characters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const int character = characters[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {  // none is above U+07FF
      text += static_cast<char>(0xc0 | (character >> 6));
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> characters_to_bytes(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    int character = static_cast<unsigned char>(text[at]);
    if (character >= 0x80) {
      if ((character & 0xe0) != 0xc0 || ++at == text.size()) return std::nullopt;
      character = ((character & 0x1f) << 6) | (static_cast<unsigned char>(text[at]) & 0x3f);
    }
    if (character >= count || bytes_of[character] < 0) return std::nullopt;
    bytes += static_cast<char>(bytes_of[character]);
  }
  return bytes;
}

}  // namespace posattn

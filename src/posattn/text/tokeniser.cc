#include "posattn/text/tokeniser.h"

#include <fmt/format.h>

#include <stdexcept>

#include "posattn/base/error.h"

namespace posattn {
namespace {

// Bytes of the character that begins at `at`; 0 where none does. Strict: no longer form than
// needed, no halves of UTF-16 pairs, nothing above U+10FFFF.
size_t character_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t place) -> unsigned {
    return place < text.size() ? static_cast<unsigned char>(text[place]) : 0;
  };
  const unsigned first = byte(at), second = byte(at + 1);
  const auto follows = [&](size_t place) { return byte(place) >= 0x80 && byte(place) <= 0xbf; };
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool possible = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second <= 0x9f);
    return possible && follows(at + 1) && follows(at + 2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool possible = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second <= 0x8f);
    return possible && follows(at + 1) && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void check_utf8(std::string_view text, std::string_view what) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text, at);
    if (bytes == 0) {
      throw Error(ExitCode::data,
                  fmt::format("{}: byte {} (0x{:02x}) is not UTF-8", what, at + 1,
                              static_cast<unsigned char>(text[at])),
                  "text in UTF-8", "convert it first: iconv -t UTF-8");
    }
    at += bytes;
  }
}

std::vector<int32_t> ByteTokeniser::encode(std::string_view text) const {
  check_utf8(text, "text");
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ByteTokeniser::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token > end()) throw std::out_of_range("a token outside the vocabulary");
    if (token != end()) text += static_cast<char>(token);
  }
  return text;
}

}  // namespace posattn

#include "posattn/text/tokeniser.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"

namespace posattn {

void check_utf8(std::string_view text, std::string_view what) {
  const size_t broken = find_broken_utf8(text);
  if (broken == std::string_view::npos) return;
  throw Error(ExitCode::data,
              fmt::format("{}: byte {} (0x{:02x}) is not UTF-8", what, broken + 1,
                          static_cast<unsigned char>(text[broken])),
              "text in UTF-8", "convert it first: iconv -t UTF-8");
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

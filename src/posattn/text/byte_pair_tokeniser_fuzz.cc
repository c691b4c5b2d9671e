// libFuzzer entry for the files of a byte-pair encoding and for text: a first line of merges, then
// text. Any bytes give an encoding that can be undone or an Error, never a crash.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/text/byte_pair_tokeniser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace posattn;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const std::string vocabulary = [] {
    nlohmann::json tokens;
    for (int byte = 0; byte < 256; ++byte) {
      tokens[bytes_to_characters(std::string(1, static_cast<char>(byte)))] = byte;
    }
    tokens["ab"] = 256;
    tokens["abab"] = 257;
    tokens["<|endoftext|>"] = 258;
    return tokens.dump();
  }();
  const size_t half = size / 2;
  for (const std::string_view merges : {bytes.substr(0, half), std::string_view("a b\nab ab\n")}) {
    try {
      const BytePairTokeniser tokeniser(vocabulary, merges, "fuzz");
      const std::string text(bytes.substr(half));
      if (tokeniser.decode(tokeniser.encode(text)) != text) std::abort();
    } catch (const Error&) {
    }
  }
  try {
    const BytePairTokeniser tokeniser(bytes, "", "fuzz");
  } catch (const Error&) {
  }
  static const std::string tokens = BytePairTokeniser(vocabulary, "", "fuzz").vocabulary()->tokens;
  for (const std::string& some : {std::string(), tokens}) {
    try {
      const BytePairTokeniser tokeniser(VocabularyText{some + std::string(bytes.substr(0, half)),
                                                       std::string(bytes.substr(half))});
      const BytePairTokeniser again(*tokeniser.vocabulary());
      if (*again.vocabulary() != *tokeniser.vocabulary()) std::abort();
    } catch (const Error&) {
    }
  }
  return 0;
}

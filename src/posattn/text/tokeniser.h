// Text as tokens and back: what a language model reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// A vocabulary as text, in characters that stand for bytes (bytes_to_characters): the tokens in the
// order of their numbers and, as "left right", what is merged in which order. Each on a line.
struct VocabularyText {
  std::string tokens, merges;
  bool operator==(const VocabularyText&) const = default;
};

class Tokeniser {
 public:
  virtual ~Tokeniser() = default;

  virtual int size() const = 0;     // tokens are 0 .. size - 1
  virtual int32_t end() const = 0;  // the token that ends a text
  // Throws Error(data) for text that is not UTF-8. May be called by several threads at once.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // The bytes that the tokens stand for; those of a whole text are UTF-8 again.
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;
  // The vocabulary that a model file must hold; null where the tokeniser's name says all.
  virtual const VocabularyText* vocabulary() const { return nullptr; }
};

// One token for each byte, and one for the end.
class ByteTokeniser : public Tokeniser {
 public:
  int size() const override { return 257; }
  int32_t end() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
};

// Throws Error(data) that names the first byte which is not UTF-8; `what` names the text.
void check_utf8(std::string_view text, std::string_view what);

}  // namespace posattn

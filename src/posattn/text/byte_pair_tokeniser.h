// GPT-2's byte-level byte-pair encoding, from the two files that its weights come with:
//   vocab.json   {"!": 0, ..., "<|endoftext|>": 50256}: each token's number, in characters that
//                stand for bytes (byte_characters.h)
//   merges.txt   "left right" in each line, the first to be merged first
// A model file holds both as VocabularyText. Either comes from anywhere: what is no such vocabulary
// is an Error(data).
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/text/byte_pairs.h"
#include "posattn/text/tokeniser.h"
#include "posattn/text/word_pattern.h"

namespace posattn {

class BytePairTokeniser : public Tokeniser {
 public:
  // The texts of both files; `where` names the folder in errors.
  BytePairTokeniser(std::string_view vocabulary, std::string_view merges, const std::string& where);
  explicit BytePairTokeniser(const VocabularyText& text);

  int size() const override { return static_cast<int>(bytes_.size()); }
  int32_t end() const override { return end_; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
  const VocabularyText* vocabulary() const override { return &text_; }

 private:
  // The sources of tokens and merges, for errors.
  struct Places {
    std::string tokens, merges, hint;
  };
  BytePairTokeniser(const std::vector<std::string>& tokens, std::string_view merges,
                    const Places& places);
  static Places places_in(const std::string& folder);

  VocabularyText text_;
  std::vector<std::string> bytes_;         // of each token
  std::array<int32_t, 256> single_bytes_;  // the token of each byte
  int32_t end_ = 0;
  BytePairs pairs_;
  WordPattern words_;
};

// vocab.json and merges.txt of a folder.
BytePairTokeniser read_byte_pair_tokeniser(const std::filesystem::path& folder);

}  // namespace posattn

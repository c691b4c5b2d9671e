// GPT-2's byte-level byte-pair encoding, from the two files that its weights come with:
//   vocab.json   {"!": 0, ..., "<|endoftext|>": 50256}: each token's number, in characters that
//                stand for bytes (bytes_to_characters)
//   merges.txt   "left right" in each line, the first to be merged first
// A model file holds both as VocabularyText. Either comes from anywhere: what is no such vocabulary
// is an Error(data).
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "posattn/text/tokeniser.h"
#include "posattn/text/word_pattern.h"

namespace posattn {

// Merging by rank: as long as two neighbours can be merged, the pair of the lowest rank is, the
// leftmost first.
class BytePairs {
 public:
  // The next rank. No pair twice, and no result twice; left and right are tokens that no merge
  // makes or that an earlier one made. So a merge never makes a pair of a lower rank possible, and
  // the order of merging is that of the ranks.
  void add(int32_t left, int32_t right, int32_t result);

  // n log n in the number of tokens.
  void merge(std::vector<int32_t>& tokens) const;

 private:
  struct Merge {
    int32_t rank, result;
  };
  const Merge* find(int32_t left, int32_t right) const;

  std::unordered_map<uint64_t, Merge> merges_;  // by both tokens
};

// How GPT-2's files write bytes: every byte is one printable character. Those that print stand for
// themselves (as in Latin-1), the others for U+0100, U+0101, ... in their order; a space is U+0120.
std::string bytes_to_characters(std::string_view bytes);
// Nothing where some character stands for no byte.
std::optional<std::string> characters_to_bytes(std::string_view characters);

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

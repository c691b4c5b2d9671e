// Cuts text into the pieces within which GPT-2 merges bytes: contractions, words and numbers with
// the space before them, other signs, white space. Letters, numbers and white space are Unicode's.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace posattn {

class WordPattern {
 public:
  WordPattern();
  ~WordPattern();
  WordPattern(WordPattern&&) noexcept;

  // The pieces one after the other are the text. Throws Error(data) for text that is not UTF-8.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace posattn

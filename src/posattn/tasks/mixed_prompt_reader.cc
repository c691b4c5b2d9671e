// A prompt from its text: a list of names with or without prices, then the question.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/mixed_prompt.h"

namespace posattn {
namespace {

class PromptReader {
 public:
  explicit PromptReader(std::string_view text) : text_(text) {}

  MixedPrompt read(std::span<const float> prices) {
    prompt_.prices.assign(prices.begin(), prices.end());
    while (!takes("Find ")) read_item(prices.empty());
    if (distractors_ != distractor_count) {
      fail(fmt::format("{} names without a price", distractors_),
           fmt::format("{}, with a sign in their names, as Cat+A", distractor_count));
    }
    if (prompt_.prices.size() != prompt_.symbols.size()) {
      fail(fmt::format("{} prices of {} categories", prompt_.prices.size(), prompt_.symbols.size()),
           "one each");
    }
    read_question();
    return std::move(prompt_);
  }

 private:
  void read_item(bool with_price) {
    const int place = static_cast<int>(prompt_.symbols.size()) + distractors_;
    expect("Cat", "a name as CatA, or the question, as 'Find min of categories ...'");
    const char sign = peek();
    if (signs_.find(sign) != std::string_view::npos) {
      ++at_;
      if (distractors_ == distractor_count) {
        fail("a third name with a sign", fmt::format("{} of them", distractor_count));
      }
      prompt_.distractors[distractors_++] = {.place = place, .sign = sign, .symbol = symbol()};
      skip_separators();
      return;
    }
    const char name = symbol();
    if (prompt_.symbols.find(name) != std::string::npos) {
      fail(fmt::format("Cat{} a second time", name), "each category once");
    }
    prompt_.symbols += name;
    skip_separators();
    if (with_price) prompt_.prices.push_back(price());
    skip_separators();
  }

  void read_question() {
    bool known = false;
    for (const Question question : {Question::minimum, Question::sum, Question::maximum}) {
      if (known || !takes(word_of(question))) continue;
      prompt_.question = question;
      known = true;
    }
    if (!known) fail("an unknown question", "min, sum or max");
    expect(" of categories ", "' of categories ' and four names");
    for (int i = 0; i < asked_categories; ++i) {
      if (i > 0) expect(i + 1 < asked_categories ? ", " : " and ", "four names, as A, B, C and D");
      expect("Cat", "a category's name");
      const size_t category = prompt_.symbols.find(symbol());
      if (category == std::string::npos) {
        fail("a question about a category without a price", "one of " + prompt_.symbols);
      }
      for (int j = 0; j < i; ++j) {
        if (prompt_.asked[j] == static_cast<int>(category)) {
          fail("a question that names a category twice", "four categories");
        }
      }
      prompt_.asked[i] = static_cast<int>(category);
    }
    takes(".");
    if (at_ != text_.size()) fail("more text", "the end after the question");
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool takes(std::string_view word) {
    const bool there = text_.substr(at_).starts_with(word);
    if (there) at_ += word.size();
    return there;
  }
  void expect(std::string_view word, const std::string& expected) {
    if (!takes(word)) fail(fmt::format("'{}'", printable(text_.substr(at_, 12))), expected);
  }
  void skip_separators() {
    while (peek() != '\0' && std::string_view(", .").find(peek()) != std::string_view::npos) ++at_;
  }
  char symbol() {
    const char name = peek();
    const bool known = training_symbols.symbols.find(name) != std::string_view::npos ||
                       test_symbols.symbols.find(name) != std::string_view::npos;
    if (!known) {
      fail(fmt::format("the symbol '{}'", printable(text_.substr(at_, 1))),
           fmt::format("one of {}{}", training_symbols.symbols, test_symbols.symbols));
    }
    ++at_;
    return name;
  }
  float price() {
    float value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc() || !(value >= 0) || !std::isfinite(value)) {
      fail(fmt::format("'{}'", printable(text_.substr(at_, 12))), "a price, as 3.41");
    }
    at_ = static_cast<size_t>(rest - text_.data());
    return value;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw Error(ExitCode::data, fmt::format("a prompt with {} at character {}", what, at_ + 1),
                expected);
  }

  const std::string_view text_;
  const std::string signs_ = fmt::format("{}{}", training_symbols.signs, test_symbols.signs);
  size_t at_ = 0;
  int distractors_ = 0;
  MixedPrompt prompt_;
};

}  // namespace

MixedPrompt read_prompt(std::string_view text, std::span<const float> prices) {
  return PromptReader(text).read(prices);
}

}  // namespace posattn

#include "posattn/tasks/mixed_prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/base/text.h"

namespace posattn {

// None of the letters of "Cat" and of the questions, no digit and no separator.
const PromptSymbols training_symbols{"ABDEGHIJKLMNOPQRSTUV", "+-"};
const PromptSymbols test_symbols{"WXYZbhjklpqvwyz#$%&@", "*_"};

namespace {

std::vector<float> draw_prices(RandomStream& random, ValueRange range, int categories) {
  range.low = range.excluded_low = 0;
  std::vector<float> prices(categories);
  if (range.integers) {
    draw_values(random, range, prices);
    return prices;
  }
  std::array<float, 2> ends;
  draw_values(random, range, ends);
  const auto [low, high] = std::minmax(ends[0], ends[1]);
  for (float& price : prices) price = random.uniform(low, high);
  return prices;
}

// Calls item(category, distractor) for every name in its order; the other of the two is null.
template <class Category, class Distraction>
void for_each_name(const MixedPrompt& prompt, Category category, Distraction distraction) {
  size_t next_category = 0, next_distractor = 0;
  const size_t names = prompt.symbols.size() + prompt.distractors.size();
  for (size_t place = 0; place < names; ++place) {
    const bool distracts = next_distractor < prompt.distractors.size() &&
                           prompt.distractors[next_distractor].place == static_cast<int>(place);
    if (distracts) {
      distraction(prompt.distractors[next_distractor++]);
    } else {
      category(next_category++);
    }
  }
}

std::string name_of(char symbol) { return std::string("Cat") + symbol; }
std::string name_of(const Distractor& distractor) {
  return std::string("Cat") + distractor.sign + distractor.symbol;
}

// "A, B, C and D"
std::string separator_before(size_t i, size_t names) {
  return i == 0 ? "" : i + 1 < names ? ", " : " and ";
}

std::string question_of(const MixedPrompt& prompt) {
  std::string names;
  for (size_t i = 0; i < prompt.asked.size(); ++i) {
    names += separator_before(i, prompt.asked.size()) + name_of(prompt.symbols[prompt.asked[i]]);
  }
  return fmt::format("Find {} of categories {}", word_of(prompt.question), names);
}

}  // namespace

float MixedPrompt::answer() const {
  std::vector<float> asked_prices;
  for (const int category : asked) asked_prices.push_back(prices[category]);
  return answer_to(question, asked_prices);
}

int fewest_categories(const PromptNames& names) { return std::max(names.asked, names.distractors); }

void check_categories(int categories, const PromptNames& names) {
  const int fewest = fewest_categories(names);
  const int most = static_cast<int>(training_symbols.symbols.size());
  if (categories >= fewest && categories <= most) return;
  throw Error(ExitCode::configuration, fmt::format("{} categories in a prompt", categories),
              fmt::format("{} to {}", fewest, most), "the length says how many");
}

MixedPrompt draw_prompt(RandomStream& random, const PromptDraw& draw) {
  const auto& [symbols, signs] = draw.alphabet;
  const int most = static_cast<int>(symbols.size());
  check_categories(draw.categories, draw.names);
  const int distractors = draw.names.distractors;
  MixedPrompt prompt;
  prompt.question = draw.question;
  prompt.asked.resize(draw.names.asked);
  std::vector<int> chosen = choose(random, most, draw.categories);
  std::ranges::sort(chosen);
  for (const int symbol : chosen) prompt.symbols += symbols[symbol];
  prompt.prices = draw_prices(random, draw.range, draw.categories);
  draw_asked(random, prompt);
  std::vector<int> places = choose(random, draw.categories + distractors, distractors);
  std::ranges::sort(places);
  const std::vector<int> resembled = choose(random, draw.categories, distractors);
  for (int i = 0; i < distractors; ++i) {
    prompt.distractors.push_back({.place = places[i],
                                  .sign = signs[random.below(static_cast<uint32_t>(signs.size()))],
                                  .symbol = prompt.symbols[resembled[i]]});
  }
  return prompt;
}

void draw_asked(RandomStream& random, MixedPrompt& prompt) {
  const auto categories = static_cast<int>(prompt.symbols.size());
  prompt.asked = choose(random, categories, static_cast<int>(prompt.asked.size()));
}

std::string text_of(const MixedPrompt& prompt) {
  std::string text;
  for_each_name(
      prompt, [&](size_t category) { text += name_of(prompt.symbols[category]); },
      [&](const Distractor& distractor) { text += name_of(distractor); });
  return text + question_of(prompt);
}

int text_length(int categories, const PromptNames& names) {
  MixedPrompt prompt;
  prompt.symbols.assign(categories, '?');
  prompt.asked.resize(names.asked);
  for (int i = 0; i < names.distractors; ++i) prompt.distractors.push_back({.place = i});
  return static_cast<int>(text_of(prompt).size());
}

std::vector<size_t> price_places(const MixedPrompt& prompt) {
  std::vector<size_t> places;
  size_t at = 0;
  for_each_name(
      prompt,
      [&](size_t category) {
        at += name_of(prompt.symbols[category]).size();
        places.push_back(at);
      },
      [&](const Distractor& distractor) { at += name_of(distractor).size(); });
  return places;
}

std::string written_price(double price) { return fmt::format("{:06.2f}", price); }

std::string written(const MixedPrompt& prompt) {
  std::vector<std::string> items;
  for_each_name(
      prompt,
      [&](size_t category) {
        items.push_back(name_of(prompt.symbols[category]));
        items.push_back(written_price(prompt.prices[category]));
      },
      [&](const Distractor& distractor) { items.push_back(name_of(distractor)); });
  return fmt::format("{}. {}.", fmt::join(items, ", "), question_of(prompt));
}

void round_to_cents(MixedPrompt& prompt) {
  for (float& price : prompt.prices) price = static_cast<float>(std::round(price * 100.0) / 100);
}

// A prompt from its text: a list of names with or without prices, then the question.

namespace {

class PromptReader {
 public:
  PromptReader(std::string_view text, const PromptNames& names) : text_(text), names_(names) {}

  MixedPrompt read(std::span<const float> prices) {
    prompt_.prices.assign(prices.begin(), prices.end());
    while (!takes("Find ")) read_item(prices.empty());
    if (std::ssize(prompt_.distractors) != names_.distractors) {
      fail(fmt::format("{} names without a price", prompt_.distractors.size()),
           fmt::format("{}, with a sign in their names, as Cat+A", names_.distractors));
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
    const auto place = static_cast<int>(prompt_.symbols.size() + prompt_.distractors.size());
    expect("Cat", "a name as CatA, or the question, as 'Find min of categories ...'");
    const char sign = peek();
    if (signs_.find(sign) != std::string_view::npos) {
      ++at_;
      if (std::ssize(prompt_.distractors) == names_.distractors) {
        fail("one more name with a sign", fmt::format("{} of them", names_.distractors));
      }
      prompt_.distractors.push_back({.place = place, .sign = sign, .symbol = symbol()});
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
    const std::string expected =
        fmt::format("{} names{}", names_.asked, names_.asked > 2 ? ", as A, B and C" : "");
    expect(" of categories ", "' of categories ' and " + expected);
    for (int i = 0; i < names_.asked; ++i) {
      expect(separator_before(i, names_.asked), expected);
      expect("Cat", "a category's name");
      const size_t category = prompt_.symbols.find(symbol());
      if (category == std::string::npos) {
        fail("a question about a category without a price", "one of " + prompt_.symbols);
      }
      for (int j = 0; j < i; ++j) {
        if (prompt_.asked[j] == static_cast<int>(category)) {
          fail("a question that names a category twice", "different categories");
        }
      }
      prompt_.asked.push_back(static_cast<int>(category));
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
  const PromptNames names_;
  size_t at_ = 0;
  MixedPrompt prompt_;
};

}  // namespace

MixedPrompt read_prompt(std::string_view text, std::span<const float> prices,
                        const PromptNames& names) {
  return PromptReader(text, names).read(prices);
}

}  // namespace posattn

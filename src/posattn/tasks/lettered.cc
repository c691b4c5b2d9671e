#include "posattn/tasks/lettered.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/question.h"

namespace posattn {
namespace {

// The words between blanks.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.empty()) return words;
    words.push_back(text.substr(0, text.find_first_of(" \t")));
    text.remove_prefix(words.back().size());
  }
}

// The listed-th order of so many different letters: its digits in the bases 26, 25, 24, ... say
// which of the letters that are left comes next.
std::vector<int> order_of(int64_t listed, int letters) {
  std::vector<int> left(letter_count), chosen;
  std::iota(left.begin(), left.end(), 0);
  for (int i = 0; i < letters; ++i) {
    const auto count = static_cast<int64_t>(left.size());
    const auto next = left.begin() + listed % count;
    listed /= count;
    chosen.push_back(*next);
    left.erase(next);
  }
  return chosen;
}

}  // namespace

void check_items(int items) {
  if (items <= letter_count) return;
  throw Error(ExitCode::configuration, fmt::format("{} items with a letter", items),
              fmt::format("at most {}, one for each letter", letter_count),
              "the length says how many");
}

int64_t orders_of_letters(int letters) {
  int64_t orders = 1;
  for (int i = 0; i < letters; ++i) {
    orders *= letter_count - i;
    if (orders > most_listed) return 0;
  }
  return orders;
}

void draw_numbers(RandomStream& random, const Sampling& sampling, std::span<float> numbers) {
  if (sampling.listed < 0) return draw_values(random, sampling.range, numbers);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::ldexp(1.0f, static_cast<int>(i));
}

void draw_letters(RandomStream& random, const Sampling& sampling, std::span<int32_t> letters) {
  const bool unseen = sampling.axis == "letters" && sampling.x == 1;
  const auto count = static_cast<int>(letters.size());
  const std::vector<int> chosen =
      sampling.listed < 0 ? choose(random, letter_count, count) : order_of(sampling.listed, count);
  std::ranges::transform(chosen, letters.begin(),
                         [&](int letter) { return letter + (unseen ? letter_count : 0); });
}

TestAxis letters_axis() {
  return {"letters", "0: those of training, 1: others, which training never shows",
          "letters (0: of training, 1: unseen)", true};
}

std::vector<std::pair<std::string, std::string>> lettered_settings() {
  return {{"width", "32"},
          {"heads", "4"},
          {"depth", "3"},
          {"mlp-width", "64"},
          {"scratch-nodes", "0"},
          {"samples", "4800"},
          {"fresh", "true"},
          {"epochs", "30"},
          {"batch", "48"},
          {"lr", "3e-3"},
          {"schedule", "warmup-linear"}};
}

int32_t LetteredText::token_of(std::string_view word) {
  if (word.size() != 1) return -1;
  const char letter = word[0];
  if (letter >= 'a' && letter <= 'z') return letter - 'a';
  return letter >= 'A' && letter <= 'Z' ? letter_count + letter - 'A' : -1;
}

void LetteredText::refuse(const std::string& what) const {
  throw Error(ExitCode::data, what, form_);
}

int LetteredText::length_of(std::string_view line) const {
  return static_cast<int>(split_at_commas(line).size()) - (asks() ? 1 : 0);
}

void LetteredText::read(std::string_view line, int length, const SampleRoom& room) const {
  if (length_of(line) != length) {
    refuse(fmt::format("a line of {} items, where the model reads {}", length_of(line), length));
  }
  const std::vector<std::string_view> parts = split_at_commas(line);
  const size_t items = static_cast<size_t>(length), before = room.tokens.size() - items;
  const int letters = letters_ > 0 ? letters_ : length;
  std::ranges::fill(room.values, 0.0f);
  for (size_t i = 0; i < items; ++i) {
    const std::vector<std::string_view> words = words_of(parts[i]);
    const int32_t letter = words.size() == 2 ? token_of(words[0]) : -1;
    float& number = room.values[before + i];
    if (letter < 0 || letter >= letters || !parse_exactly(words[1], number) ||
        !std::isfinite(number)) {
      refuse(fmt::format("the item '{}'", printable(parts[i])));
    }
    const auto earlier = room.tokens.subspan(before, i);
    if (letters_ > 0 && std::ranges::find(earlier, letter) != earlier.end()) {
      refuse(fmt::format("the letter {} twice", words[0]));
    }
    room.tokens[before + i] = letter;
  }
  if (asks()) {
    read_question(words_of(parts.back()), room.tokens.subspan(before), room.tokens.first(before));
  }
}

std::string LetteredText::node(int32_t token, std::span<const float> values) const {
  if (token >= 2 * letter_count) {
    return std::string(word_of(static_cast<Question>(token - 2 * letter_count)));
  }
  const char letter =
      static_cast<char>(token < letter_count ? 'a' + token : 'A' + token - letter_count);
  return values[0] == 0 ? std::string(1, letter) : fmt::format("{} {:.4g}", letter, values[0]);
}

}  // namespace posattn

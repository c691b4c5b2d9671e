#include "posattn/tasks/mixed_prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "posattn/base/error.h"

namespace posattn {
namespace {

// Choices of three among so many.
double choices_of_three(size_t many) {
  const auto n = static_cast<double>(many);
  return n * (n - 1) * (n - 2) / 6;
}

}  // namespace

// None of the letters of "Cat" and of the questions, no digit and no separator.
const PromptSymbols training_symbols{"ABDEGHIJKLMNOPQRSTUV", "+-"};
const PromptSymbols test_symbols{"WXYZbhjklpqvwyz#$%&@", "*_"};

namespace {

// `chosen` different numbers below `bound`, in random order.
std::vector<int> choose(RandomStream& random, int bound, int chosen) {
  std::vector<int> numbers(bound);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < chosen; ++i) {
    std::swap(numbers[i], numbers[i + random.below(static_cast<uint32_t>(bound - i))]);
  }
  numbers.resize(chosen);
  return numbers;
}

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
  const size_t names = prompt.symbols.size() + distractor_count;
  for (size_t place = 0; place < names; ++place) {
    const bool distracts = next_distractor < distractor_count &&
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

std::string question_of(const MixedPrompt& prompt) {
  const auto name = [&](int i) { return name_of(prompt.symbols[prompt.asked[i]]); };
  return fmt::format("Find {} of categories {}, {}, {} and {}", word_of(prompt.question), name(0),
                     name(1), name(2), name(3));
}

}  // namespace

std::string_view word_of(Question question) {
  switch (question) {
    case Question::minimum:
      return "min";
    case Question::sum:
      return "sum";
    case Question::maximum:
      break;
  }
  return "max";
}

float MixedPrompt::answer_to(Question question, std::span<const float> asked_prices) {
  switch (question) {
    case Question::minimum:
      return std::ranges::min(asked_prices);
    case Question::maximum:
      return std::ranges::max(asked_prices);
    case Question::sum:
      break;
  }
  return static_cast<float>(std::accumulate(asked_prices.begin(), asked_prices.end(), 0.0));
}

float MixedPrompt::answer() const {
  std::array<float, asked_categories> asked_prices;
  for (int i = 0; i < asked_categories; ++i) asked_prices[i] = prices[asked[i]];
  return answer_to(question, asked_prices);
}

void check_categories(int categories) {
  const int most = static_cast<int>(training_symbols.symbols.size());
  if (categories >= asked_categories && categories <= most) return;
  throw Error(ExitCode::configuration, fmt::format("{} categories in a prompt", categories),
              fmt::format("{} to {}", asked_categories, most), "the length says how many");
}

MixedPrompt draw_prompt(RandomStream& random, const PromptDraw& draw) {
  const auto& [symbols, signs] = draw.alphabet;
  const int most = static_cast<int>(symbols.size());
  check_categories(draw.categories);
  MixedPrompt prompt;
  prompt.question = draw.question;
  std::vector<int> chosen = choose(random, most, draw.categories);
  std::ranges::sort(chosen);
  for (const int symbol : chosen) prompt.symbols += symbols[symbol];
  prompt.prices = draw_prices(random, draw.range, draw.categories);
  draw_asked(random, prompt);
  std::vector<int> places = choose(random, draw.categories + distractor_count, distractor_count);
  std::ranges::sort(places);
  const std::vector<int> resembled = choose(random, draw.categories, distractor_count);
  for (int i = 0; i < distractor_count; ++i) {
    prompt.distractors[i] = {.place = places[i],
                             .sign = signs[random.below(static_cast<uint32_t>(signs.size()))],
                             .symbol = prompt.symbols[resembled[i]]};
  }
  return prompt;
}

void draw_asked(RandomStream& random, MixedPrompt& prompt) {
  const auto categories = static_cast<int>(prompt.symbols.size());
  std::ranges::copy(choose(random, categories, asked_categories), prompt.asked.begin());
}

std::string text_of(const MixedPrompt& prompt) {
  std::string text;
  for_each_name(
      prompt, [&](size_t category) { text += name_of(prompt.symbols[category]); },
      [&](const Distractor& distractor) { text += name_of(distractor); });
  return text + question_of(prompt);
}

int text_length(int categories) {
  MixedPrompt prompt;
  prompt.symbols.assign(categories, '?');
  for (int i = 0; i < distractor_count; ++i) prompt.distractors[i].place = i;
  return static_cast<int>(text_of(prompt).size());
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

float query_blind_answer(Question question, std::span<const float> prices) {
  const size_t count = prices.size();
  if (question == Question::sum) {
    const double sum = std::accumulate(prices.begin(), prices.end(), 0.0);
    return static_cast<float>(asked_categories * sum / static_cast<double>(count));
  }
  std::vector<float> sorted(prices.begin(), prices.end());
  if (question == Question::minimum) {
    std::ranges::sort(sorted);
  } else {
    std::ranges::sort(sorted, std::greater<>());
  }
  // A price is the answer where the other three asked come after it.
  double sum = 0, choices = 0;
  for (size_t i = 0; i + asked_categories <= count; ++i) {
    const double others = choices_of_three(count - 1 - i);
    sum += others * sorted[i];
    choices += others;
  }
  return static_cast<float>(sum / choices);
}

}  // namespace posattn

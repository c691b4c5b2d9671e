#include "posattn/tasks/question.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace posattn {
namespace {

// Choices of `chosen` among `many`; every quotient is a whole number.
double choices_of(size_t many, int chosen) {
  double choices = 1;
  for (int i = 1; i <= chosen; ++i) choices = choices * (static_cast<double>(many) - i + 1) / i;
  return choices;
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

float answer_to(Question question, std::span<const float> asked) {
  switch (question) {
    case Question::minimum:
      return std::ranges::min(asked);
    case Question::maximum:
      return std::ranges::max(asked);
    case Question::sum:
      break;
  }
  return static_cast<float>(std::accumulate(asked.begin(), asked.end(), 0.0));
}

float query_blind_answer(Question question, std::span<const float> numbers, int asked) {
  const size_t count = numbers.size();
  if (question == Question::sum) {
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    return static_cast<float>(asked * sum / static_cast<double>(count));
  }
  std::vector<float> sorted(numbers.begin(), numbers.end());
  if (question == Question::minimum) {
    std::ranges::sort(sorted);
  } else {
    std::ranges::sort(sorted, std::greater<>());
  }
  // A number is the answer where the others asked come after it.
  double sum = 0, choices = 0;
  for (size_t i = 0; i + static_cast<size_t>(asked) <= count; ++i) {
    const double others = choices_of(count - 1 - i, asked - 1);
    sum += others * sorted[i];
    choices += others;
  }
  return static_cast<float>(sum / choices);
}

std::vector<int> choose(RandomStream& random, int bound, int chosen) {
  std::vector<int> numbers(bound);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < chosen; ++i) {
    std::swap(numbers[i], numbers[i + random.below(static_cast<uint32_t>(bound - i))]);
  }
  numbers.resize(chosen);
  return numbers;
}

}  // namespace posattn

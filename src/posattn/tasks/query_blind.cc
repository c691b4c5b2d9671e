#include "posattn/tasks/query_blind.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace posattn {
namespace {

// Choices of three among so many.
double choices_of_three(size_t many) {
  const auto n = static_cast<double>(many);
  return n * (n - 1) * (n - 2) / 6;
}

}  // namespace

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

#include "posattn/bounds/covering.h"

#include <algorithm>
#include <cmath>

#include "posattn/bounds/log_space.h"

namespace posattn::bounds {
namespace {

constexpr int row_steps = 10;  // q
// Beyond e^30 the next integer is so near that this much more in the logarithm covers it.
constexpr double whole_up_to = 30, next_whole = 1e-12;

}  // namespace

double linear_entropy(double size, double length, double radius, double points) {
  const double ratio = size * length / radius;
  return ratio * ratio * std::log(2 * points + 1);
}

double row_profiles(int rows) {
  double sum = 0;
  for (int i = 1; i <= rows; ++i) {
    sum += std::log((static_cast<double>(row_steps + 1) * rows + i) / i);
  }
  return sum;
}

std::optional<double> log_attention_steps(double log_radius, int nodes,
                                          std::optional<double> samples) {
  if (log_radius >= std::log(2.0)) return {};
  // Largest remainders: ceil(N / (2 radius)).
  const double remainders = std::log(nodes / 2.0) - log_radius;
  double steps = remainders < whole_up_to ? std::log(std::ceil(std::exp(remainders)))
                                          : remainders + next_whole;
  if (samples) {
    // Maurey and Pinelis: floor(8 ln(2m) / radius^2) + 1.
    const double draws = std::log(8 * std::log(2.0 * *samples)) - 2 * log_radius;
    steps = std::min(steps, draws < whole_up_to ? std::log(std::floor(std::exp(draws)) + 1)
                                                : draws + next_whole);
  }
  return steps;
}

double attention_row_entropy(double log_radius, int nodes, std::optional<double> samples) {
  const std::optional<double> steps = log_attention_steps(log_radius, nodes, samples);
  if (!steps) return 0;
  // ln C(k + N - 1, N - 1), k = e^steps
  double sum = 0;
  for (int i = 1; i < nodes; ++i) {
    const double log_i = std::log(i);
    sum += log_sum({*steps, log_i}) - log_i;
  }
  return sum;
}

Chain chain(const std::function<double(double)>& log_entropy, double samples, double clip) {
  constexpr int most_links = 40, patience = 3;
  const double log_samples = std::log(samples);
  Chain best{.log_average = -log_zero};
  double links = log_zero, entropy_before = log_zero;
  double log_radius = 2 * std::log(clip) - std::log(2.0);
  for (int k = 1; k <= most_links && k <= best.links + patience; ++k) {
    log_radius -= std::log(2.0);
    const double entropy = log_entropy(log_radius);
    const double link = std::log(3.0) + log_radius +
                        (std::log(2.0) - log_samples + log_sum({entropy, entropy_before})) / 2;
    links = log_sum({links, link});
    const double average = log_sum({log_radius, links});
    if (average < best.log_average) best = {.log_average = average, .links = k};
    entropy_before = entropy;
  }
  return best;
}

}  // namespace posattn::bounds

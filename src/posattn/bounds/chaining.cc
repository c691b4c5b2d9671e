#include "posattn/bounds/chaining.h"

#include <cmath>

#include "posattn/bounds/log_space.h"

namespace posattn::bounds {

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

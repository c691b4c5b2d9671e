#include "posattn/bounds/certificate/statement.h"

#include <algorithm>
#include <cmath>

#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {

double expectation_bound(double mean, int64_t count, double delta) {
  return kl_inverse(mean, std::log(1 / delta) / static_cast<double>(count));
}

double drawn_bound(double training_loss, double log_ratio, int64_t samples, double delta) {
  const auto m = static_cast<double>(samples);
  // A ratio below 1 is possible for a draw, never for the right side.
  const double right = std::max(0.0, log_ratio + std::log(2 * std::sqrt(m) / delta));
  return kl_inverse(training_loss, right / m);
}

double randomised_bound(double loss_bound, double divergence, int64_t samples, double delta) {
  return drawn_bound(loss_bound, divergence, samples, delta / 2);
}

}  // namespace posattn::bounds

#include "posattn/bounds/input_jacobian.h"

#include <cmath>

namespace posattn::bounds {

double input_jacobian(const CollapsedNetwork& network, std::span<const double> x, int64_t samples) {
  constexpr double step = 1e-5;  // errors of cutting off and of rounding are both near 1e-10
  const auto outputs_at = [&](int input, double by) {
    std::vector<double> moved(x.begin(), x.end());
    for (size_t k = input; k < moved.size(); k += network.real_nodes) moved[k] += by;
    return forward(network, moved, samples);
  };
  double sum = 0;
  for (int input = 0; input < network.real_nodes; ++input) {
    const std::vector<double> above = outputs_at(input, step), below = outputs_at(input, -step);
    for (size_t k = 0; k < above.size(); ++k) {
      const double slope = (above[k] - below[k]) / (2 * step);
      sum += slope * slope;
    }
  }
  return std::sqrt(sum / static_cast<double>(samples));
}

}  // namespace posattn::bounds

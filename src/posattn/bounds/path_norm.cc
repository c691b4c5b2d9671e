#include "posattn/bounds/path_norm.h"

#include <algorithm>
#include <cmath>

namespace posattn::bounds {
namespace {

double square(double value) { return value * value; }

}  // namespace

// Weights squared, ReLUs left out, every value one. All nodes are then alike, so one is enough.
double log_path_norm(const CollapsedNetwork& network) {
  std::vector<double> state(network.layers.front().in(), 1.0 / network.nodes);
  state.front() = 1;     // the value; behind it, of a standard network, the one-hot positions
  double log_scale = 0;  // of the state, so that nothing overflows
  for (const CollapsedLayer& layer : network.layers) {
    std::vector<double> next(layer.out());
    for (int r = 0; r < layer.out(); ++r) {
      next[r] = square(layer.offset[r]) * std::exp(-log_scale);
      for (const Matrix& map : layer.maps) {
        for (int k = 0; k < layer.in(); ++k) next[r] += square(map(r, k)) * state[k];
      }
    }
    const double largest = *std::ranges::max_element(next);
    if (largest > 1) {
      for (double& value : next) value /= largest;
      log_scale += std::log(largest);
    }
    state = std::move(next);
  }
  double sum = square(network.output_offset) * std::exp(-log_scale);
  for (size_t k = 0; k < state.size(); ++k) sum += square(network.output[k]) * state[k];
  return (std::log(sum) + log_scale) / 2;
}

}  // namespace posattn::bounds

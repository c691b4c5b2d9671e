#include "posattn/bounds/certificate/gap_measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace posattn::bounds {

double distance_between(const Parameters<float>& a, const Parameters<float>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.values().size(); ++k) {
    const double moved = double{a.values()[k]} - double{b.values()[k]};
    sum += moved * moved;
  }
  return std::sqrt(sum);
}

double log_path_norm(const CollapsedNetwork& network) {
  // From each unit to the output, in units of e^logarithm, so that depth does not overflow.
  std::vector<double> paths(network.output.size());
  std::ranges::transform(network.output, paths.begin(), [](double w) { return std::abs(w); });
  double offsets = std::abs(network.output_offset), logarithm = 0;
  for (size_t l = network.layers.size(); l-- > 0;) {
    const CollapsedLayer& layer = network.layers[l];
    std::vector<double> before(layer.in());
    for (int k = 0; k < layer.out(); ++k) {
      offsets += std::abs(layer.offset[k]) * paths[k];
      for (const Matrix& map : layer.maps) {
        for (int i = 0; i < layer.in(); ++i) before[i] += std::abs(map(k, i)) * paths[k];
      }
    }
    const double scale = std::max(1.0, std::accumulate(before.begin(), before.end(), 0.0));
    for (double& path : before) path /= scale;
    offsets /= scale;
    logarithm += std::log(scale);
    paths = std::move(before);
  }
  return std::log(std::accumulate(paths.begin(), paths.end(), offsets)) + logarithm;
}

double mean_jacobian_norm(const CollapsedNetwork& network, std::span<const float> inputs,
                          int64_t samples) {
  constexpr double step = 1e-6;
  const int nodes = network.real_nodes;
  double mean = 0;
  for (int64_t s = 0; s < samples; ++s) {
    // Two rows for each input: above and below.
    std::vector<double> moved;
    for (int row = 0; row < 2 * nodes; ++row) {
      for (int i = 0; i < nodes; ++i) moved.push_back(inputs[s * nodes + i]);
      moved[static_cast<size_t>(row) * nodes + row / 2] += row % 2 == 0 ? step : -step;
    }
    const std::vector<double> outputs = forward(network, moved, 2 * nodes);
    double square = 0;
    for (int row = 0; row < 2 * nodes; row += 2) {
      for (int i = 0; i < nodes; ++i) {
        const size_t k = static_cast<size_t>(row) * nodes + i;
        square += std::pow((outputs[k] - outputs[k + nodes]) / (2 * step), 2);
      }
    }
    mean += std::sqrt(square) / static_cast<double>(samples);
  }
  return mean;
}

}  // namespace posattn::bounds

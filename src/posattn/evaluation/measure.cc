#include "posattn/evaluation/measure.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace posattn {
namespace {

double ratio(double sum, int64_t count) {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

}  // namespace

double ErrorSums::mse() const { return ratio(squared, samples); }

double ErrorSums::accuracy() const { return ratio(static_cast<double>(accurate), samples); }

std::vector<double> ErrorSums::mse_per_node() const {
  std::vector<double> mean(squared_per_node.size());
  for (size_t i = 0; i < mean.size(); ++i)
    mean[i] = ratio(squared_per_node[i], outputs_per_node[i]);
  return mean;
}

ErrorSums& ErrorSums::operator+=(const ErrorSums& other) {
  samples += other.samples;
  accurate += other.accurate;
  squared += other.squared;
  const size_t nodes = std::max(squared_per_node.size(), other.squared_per_node.size());
  squared_per_node.resize(nodes);
  outputs_per_node.resize(nodes);
  for (size_t i = 0; i < other.squared_per_node.size(); ++i) {
    squared_per_node[i] += other.squared_per_node[i];
    outputs_per_node[i] += other.outputs_per_node[i];
  }
  return *this;
}

ErrorSums compare(const Dataset& set, std::span<const float> outputs,
                  std::span<const uint8_t> mask) {
  const int nodes = set.shape.real_nodes;
  const int columns = set.shape.output_columns;
  assert(outputs.size() == set.targets.size());
  assert(mask.empty() || static_cast<int64_t>(mask.size()) == set.shape.target_count());
  ErrorSums sums;
  sums.samples = set.samples;
  sums.squared_per_node.resize(nodes);
  sums.outputs_per_node.resize(nodes);
  size_t at = 0;
  for (int64_t sample = 0; sample < set.samples; ++sample) {
    double squared = 0;
    bool accurate = true;
    size_t in_mask = 0;
    for (int node = 0; node < nodes; ++node) {
      double squared_at_node = 0;
      bool counts = false;
      for (int column = 0; column < columns; ++column, ++at, ++in_mask) {
        if (!mask.empty() && mask[in_mask] == 0) continue;
        counts = true;
        const double target = set.targets[at];
        const double error = outputs[at] - target;
        squared_at_node += error * error;
        // Written so that NaN is not accurate.
        const double tolerance = absolute_tolerance + relative_tolerance * std::abs(target);
        accurate = accurate && std::abs(error) <= tolerance;
      }
      sums.squared_per_node[node] += squared_at_node;
      sums.outputs_per_node[node] += counts ? columns : 0;
      squared += squared_at_node;
    }
    sums.squared += squared / (static_cast<double>(nodes) * columns);
    sums.accurate += accurate ? 1 : 0;
  }
  return sums;
}

ErrorSums measure(Network& network, const Parameters<float>& parameters, const Dataset& set,
                  std::span<const uint8_t> mask) {
  std::vector<float> outputs(set.targets.size());
  const Batch batch{.inputs = set.inputs,
                    .targets = set.targets,
                    .samples = set.samples,
                    .real_nodes = set.shape.real_nodes};
  if (set.samples > 0) network.forward(parameters, batch, outputs);
  return compare(set, outputs, mask);
}

}  // namespace posattn

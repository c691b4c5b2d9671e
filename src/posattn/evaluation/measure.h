// Errors of a network's outputs on a set of samples, summed in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

// An output is right when |output - target| <= absolute + relative |target|, and a sample is
// accurate when every output that counts is right.
inline constexpr double relative_tolerance = 0.1;
inline constexpr double absolute_tolerance = 0.1;

// Sums over samples, so that sets of different lengths can be added up.
struct ErrorSums {
  int64_t samples = 0;
  int64_t accurate = 0;
  // Over samples, of the sample's squared errors divided by real_nodes x output_columns (as in
  // Network::gradient: outputs outside the mask contribute nothing, but are in the denominator).
  double squared = 0;
  std::vector<double> squared_per_node;   // over samples and columns
  std::vector<int64_t> outputs_per_node;  // samples x columns; 0 where none counts

  double mse() const;  // NaN when there are no samples
  double accuracy() const;
  std::vector<double> mse_per_node() const;  // NaN for a node of which no output counts
  ErrorSums& operator+=(const ErrorSums& other);
};

// `outputs` and the set's targets: [samples, real_nodes, output_columns]. mask: as loss_mask makes
// it; empty: all outputs count.
ErrorSums compare(const Dataset& set, std::span<const float> outputs,
                  std::span<const uint8_t> mask);

// Runs the network on the set and compares.
ErrorSums measure(Network& network, const Parameters<float>& parameters, const Dataset& set,
                  std::span<const uint8_t> mask);

}  // namespace posattn

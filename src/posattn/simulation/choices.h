// The sizes of a copy, chosen by its error on inputs that took no part in calibration.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>

#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

// The largest copy that is built.
inline constexpr int most_nodes = 20'000;  // N = 141 with N copies of each
inline constexpr int most_hidden_units = 16384;

// Throws Error(configuration) for a copy beyond the limits, with the formulas of its size.
void require_nodes(const KeyPlan& plan);
void require_hidden_units(int units);

struct HeldOut {
  Dataset inputs;
  std::vector<double> expected;  // the original's outputs
  int threads = 1;
};

// Layers in few terms: by exact functions the copy's relative error is at most `error`.
std::vector<FoldedLayer> fold_to(double error, const StandardNetwork& network,
                                 const Calibration& calibration, const KeyPlan& plan,
                                 const HeldOut& held_out);

// A copy's tables and how many pieces they have, by layer.
struct ChosenTables {
  std::vector<TableSizes> sizes;
  std::vector<std::vector<FittedTable>> tables;
};

class TableChooser {
 public:
  TableChooser(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
               const Calibration& calibration, const KeyPlan& plan);

  ChosenTables of_size(int pieces) const;
  // All layers of a network are as wide as the widest, so every table takes as many
  // units as fit; the width is the least found that gives a relative error of at most `error`.
  ChosenTables to(double error, const HeldOut& held_out) const;

 private:
  ChosenTables with(std::vector<TableSizes> sizes) const;

  const StandardNetwork& network_;
  const std::vector<FoldedLayer>& layers_;
  const KeyPlan plan_;
  std::vector<std::vector<Arguments>> arguments_;
};

inline double standard_deviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double sum = 0;
  for (const double x : values) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / count);
}

// Mean square of the differences.
inline double mean_square(const auto& left, const auto& right) {
  double sum = 0;
  for (size_t k = 0; k < left.size(); ++k) {
    const double error = double{left[k]} - double{right[k]};
    sum += error * error;
  }
  return sum / static_cast<double>(left.size());
}

// Root mean square error in standard deviations of what is expected.
inline double relative_error(const std::vector<double>& found,
                             const std::vector<double>& expected) {
  return std::sqrt(mean_square(found, expected)) / standard_deviation(expected);
}

}  // namespace posattn::simulation

// The sizes of a copy, chosen by its error on inputs that took no part in calibration.
#pragma once

#include <vector>

#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

// The largest copy that is built.
inline constexpr int most_nodes = 1100;  // n = 32 and a scratch node
inline constexpr int most_hidden_units = 16384;

// Throws Error(configuration) for a copy beyond the limits, with the formulas of its size.
void require_nodes(int nodes);
void require_hidden_units(int units);

struct HeldOut {
  Dataset inputs;
  std::vector<double> expected;  // the original's outputs
  int threads = 1;
};

// Layers in few terms: by exact functions the copy's relative error is at most `error`.
std::vector<FoldedLayer> fold_to(double error, const StandardNetwork& network,
                                 const Calibration& calibration, const HeldOut& held_out);

// A copy's tables and how many pieces they have, by layer.
struct ChosenTables {
  std::vector<TableSizes> sizes;
  std::vector<std::vector<FittedTable>> tables;
};

class TableChooser {
 public:
  TableChooser(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
               const Calibration& calibration);

  ChosenTables of_size(int pieces) const;
  // All layers of a network are as wide as the widest, so every table takes as many
  // units as fit; the width is the least found that gives a relative error of at most `error`.
  ChosenTables to(double error, const HeldOut& held_out) const;

 private:
  ChosenTables with(std::vector<TableSizes> sizes) const;

  const StandardNetwork& network_;
  const std::vector<FoldedLayer>& layers_;
  std::vector<std::vector<Arguments>> arguments_;
};

}  // namespace posattn::simulation

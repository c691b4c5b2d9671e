// Statistics of a standard network on inputs of its task, and the copy's tables made from them.
#pragma once

#include <array>

#include "posattn/simulation/folded_layer.h"
#include "posattn/tasks/dataset.h"

namespace posattn::simulation {

struct Calibration {
  std::vector<std::vector<Matrix>> words;  // before each layer, of each input
  std::vector<Attention> mean_attention;   // of each layer
};
Calibration calibrate(const StandardNetwork& network, const Dataset& inputs);

// The arguments of every table of a layer, by exact functions.
std::vector<Arguments> arguments_of(const FoldedLayer& layer, const std::vector<Matrix>& words);

using TableSizes = std::array<int, uses>;  // pieces of a layer's tables, by use
std::vector<FittedTable> make_tables(const FoldedLayer& layer,
                                     const std::vector<Arguments>& arguments,
                                     const TableSizes& pieces, int nodes);

// The hidden units that the positional network's layers take, one number per stage.
struct StageUnits {
  int scores = 0, maximum = 0, exponentials = 0, logarithms = 0, weighted_values = 0, mlp = 0;
  int most() const;
};
StageUnits units_of(const FoldedLayer& layer, const TableSizes& pieces);
// Every table gets as many pieces as fit into so many hidden units, at least `fewest_pieces`.
inline constexpr int fewest_pieces = 4, most_pieces = 4096;
TableSizes sizes_for(const FoldedLayer& layer, int hidden_units);

// Outputs of the original, [samples, real_nodes, output_columns]; with attention frozen where that
// is given.
std::vector<double> original_outputs(const StandardNetwork& network, const Dataset& inputs,
                                     const std::vector<Attention>* frozen = nullptr);

// The same of the folded layers; without tables by exact functions.
struct CopyOutputs {
  std::vector<double> values;
  double outside = 0;  // share of all arguments that lie outside their tables
};
CopyOutputs copy_outputs(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                         const std::vector<std::vector<FittedTable>>* tables, const Dataset& inputs,
                         int threads);

}  // namespace posattn::simulation

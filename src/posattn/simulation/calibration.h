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
std::vector<Arguments> arguments_of(const FoldedLayer& layer, const std::vector<Matrix>& words,
                                    const KeyPlan& plan);

using TableSizes = std::array<int, function_count>;  // pieces of a layer's tables, by function
std::vector<FittedTable> make_tables(const FoldedLayer& layer,
                                     const std::vector<Arguments>& arguments,
                                     const TableSizes& pieces);

// The hidden units that the positional network's layers take: one that hands inputs to all copies,
// the first step, the largest other step, one that combines sums alone, and those that follow.
struct LayerUnits {
  int spread = 0, first = 0, step = 0, combination = 0, exponentials = 0, mlp = 0;
  int most() const;
};
LayerUnits units_of(const FoldedLayer& layer, const TableSizes& pieces, const KeyPlan& plan);
// Every table gets as many pieces as fit into so many hidden units, at least `fewest_pieces`.
inline constexpr int fewest_pieces = 4, most_pieces = 4096;
TableSizes sizes_for(const FoldedLayer& layer, int hidden_units, const KeyPlan& plan);

// Outputs of the original that count, [samples, nodes_read, output_columns]; with attention frozen
// where that is given.
std::vector<double> original_outputs(const StandardNetwork& network, const Dataset& inputs,
                                     const std::vector<Attention>* frozen = nullptr);

// The same of folded layers by exact functions, and of the copy by its tables.
std::vector<double> folded_outputs(const StandardNetwork& network,
                                   const std::vector<FoldedLayer>& layers, const Dataset& inputs,
                                   int threads);
struct CopyOutputs {
  std::vector<double> values;
  double outside = 0;  // share of all arguments that lie outside their tables
};
CopyOutputs copy_outputs(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                         const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                         const Dataset& inputs, int threads);

}  // namespace posattn::simulation

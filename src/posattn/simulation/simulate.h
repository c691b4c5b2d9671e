// Remark 5.1 of the paper made real: a standard Transformer inside a positional one, of N^2 + 1
// nodes and L (5 + ceil(log2 N)) layers for an original of N nodes and L layers.
//
// Who reads whom is fixed in the copy, so attention that depends on the data must be computed by
// its MLPs, from tables (folded_layer.h). Tables are fitted to the numbers that occur on inputs of
// the model's task, so that the copy is good there and may be anything elsewhere.
#pragma once

#include <cstdint>

#include "posattn/model/file/model_file.h"
#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

struct SimulationOptions {
  double scale = 1;         // calibrated on values in [-range scale, range scale]
  double tolerance = 0.01;  // root mean square error in standard deviations of the outputs
  std::optional<int> table_size = {};  // pieces of all tables, instead of a tolerance
  int64_t samples = 1000;              // for calibration, for choices, and for each check
  uint64_t seed = 0;
  int threads = 1;
  std::vector<double> scales = {};  // at which to check beyond the calibrated range
};

// On fresh inputs; errors are root mean squares over standard deviations of the original's outputs.
struct SimulationCheck {
  double error = 0;    // of the copy
  double largest = 0;  // of the copy's single outputs, in the same unit
  double control = 0;  // of the original with attention frozen at its mean over calibration
  double outside = 0;  // share of arguments outside their tables
  double original_mse = 0, copy_mse = 0;  // against the task's answer
};

struct SimulatedLayer {
  int products = 0, channels = 0;  // terms of scores and of values, all heads
  int full_products = 0, full_channels = 0;
  TableSizes pieces = {};
  StageUnits units;
};

struct Simulation {
  Model model;
  std::vector<SimulatedLayer> layers;         // of the original
  SimulationCheck check;                      // in the calibrated range
  std::vector<SimulationCheck> scale_checks;  // one for each of the scales
  int64_t nonzero_weights = 0;
};

// Throws Error(configuration) for a model that is no standard Transformer, or whose copy would be
// too large, with the size it would have.
Simulation simulate_standard(const Model& model, const std::string& name,
                             const SimulationOptions& options);

// The positional network that does what folded layers and their tables say.
//
// A node for every pair (i, j) of the original's N nodes, and the scratch node, which stays zero.
// All nodes of row i hold the words u_i of node i. The first nodes are the diagonal (i, i) of the
// real nodes: only there numbers come in and go out, all other nodes are scratch nodes. Two heads:
// one reads a single place, (j, j) for what belongs to j, the other the mean of row i.

// Layers of a copy for each of the original's: A, M (ceil(log2 N)), B, C, D, E.
int layers_each(int nodes);
// The node of pair (i, j).
int pair_node(int real_nodes, int nodes, int i, int j);

// Task, length and range are the original's.
Model construct(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const std::vector<std::vector<FittedTable>>& tables, const ModelOrigin& origin);

}  // namespace posattn::simulation

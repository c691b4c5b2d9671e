// A standard Transformer of N nodes and L layers inside a positional one, of N k + 1 nodes and
// about N / k + log2 k + 3 layers for each of the original's. With k = N these are the sizes of
// Remark 5.1 of the paper; k = 1 shows that N + 1 nodes are enough.
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
  double scale = 1;                // calibrated on values in [-range scale, range scale]
  double tolerance = 0.01;         // root mean square error in standard deviations of the outputs
  std::optional<int> copies = {};  // of each node; default_copies
  std::optional<int> length = {};  // of a model of several lengths; its longest
  std::optional<int> table_size = {};  // pieces of all tables, instead of a tolerance
  int64_t samples = 1000;              // for calibration, for choices, and for each check
  uint64_t seed = 0;
  int threads = 1;
  std::vector<double> scales = {};  // at which to check beyond the calibrated range
};

// Against the task's answer: the mean squared error, or the share of classes that are right.
struct AnswerCheck {
  double original = 0, copy = 0;
};

// On fresh inputs; errors are root mean squares over standard deviations of the original's outputs.
struct SimulationCheck {
  double deviation = 0;  // that standard deviation
  double error = 0;      // of the copy
  double largest = 0;    // of the copy's single outputs, in the same unit
  double control = 0;    // of the original with attention frozen at its mean over calibration
  double outside = 0;    // share of arguments outside their tables
  AnswerCheck answers;
  double same_class = 1;  // share of nodes for which both decide alike
};

struct SimulatedLayer {
  int products = 0, channels = 0;  // terms of scores and of values, all heads
  int full_products = 0, full_channels = 0;
  TableSizes pieces = {};
  LayerUnits units;
};

struct Simulation {
  Model model;
  KeyPlan plan;
  bool classes = false;
  std::vector<SimulatedLayer> layers;         // of the original
  SimulationCheck check;                      // in the calibrated range
  std::vector<SimulationCheck> scale_checks;  // one for each of the scales
  double bound = 0;  // of `largest`, for all inputs inside the tables (error_bound.h)
  int64_t nonzero_weights = 0;
};

// Throws Error(configuration) for a model that is no standard Transformer, or whose copy would be
// too large, with the size it would have.
Simulation simulate_standard(const Model& model, const std::string& name,
                             const SimulationOptions& options);

// About the root of N: nearly as few layers as N copies have, and nearly as little work as one.
int default_copies(int nodes);

// The positional network that does what folded layers and their tables say.
//
// Nodes are the copies of the original's nodes (key_plan.h); the last node stays zero. Numbers come
// in and go out at copies 0 of real nodes; all other nodes are scratch nodes. A node holds what is
// linear in the words u of its original: its part of the MLP, its queries, keys and values. One
// head reads one place.

// Outputs, task, length and range are the original's.
Model construct(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                const Model& original);

}  // namespace posattn::simulation

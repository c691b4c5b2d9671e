#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "posattn/model/routed/routed_network.h"
#include "posattn/simulation/choices.h"
#include "posattn/simulation/simulate.h"
#include "posattn/simulation/standard_model_test.h"

namespace posattn::simulation {
namespace {

TEST(Construction, EveryPairHasItsNode) {
  for (const auto& [real, all] : {std::pair{1, 1}, {1, 2}, {3, 3}, {3, 4}, {3, 6}, {8, 9}}) {
    std::set<int> nodes;
    for (int i = 0; i < all; ++i) {
      for (int j = 0; j < all; ++j) nodes.insert(pair_node(real, all, i, j));
    }
    for (int i = 0; i < real; ++i) EXPECT_EQ(pair_node(real, all, i, i), i);
    EXPECT_EQ(nodes.size(), all * all);
    EXPECT_EQ(*nodes.begin(), 0);
    EXPECT_EQ(*nodes.rbegin(), all * all - 1);
  }
}

TEST(Construction, LayersForEachOfTheOriginals) {
  EXPECT_EQ(layers_each(9), 9);
  EXPECT_EQ(layers_each(8), 8);
  EXPECT_EQ(layers_each(2), 6);
}

// A small original with its copy by tables of one size.
struct Copied {
  Model original;
  StandardNetwork network;
  std::vector<FoldedLayer> layers;
  ChosenTables chosen;
  std::optional<Model> copy;
  Dataset inputs;

  Copied(int length, int depth, int pieces)
      : original(testing::standard_model(length, depth, 11)),
        network(read_standard(original, "it")),
        inputs(testing::inputs_for(original, 100, Purpose::test_data)) {
    const Calibration calibration =
        calibrate(network, testing::inputs_for(original, 500, Purpose::train_data));
    for (size_t l = 0; l < network.layers.size(); ++l) {
      layers.push_back(fold(network.layers[l], calibration.words[l], l == 0, 1, {1e-4, 1e-4}));
    }
    chosen = TableChooser(network, layers, calibration).of_size(pieces);
    copy = construct(network, layers, chosen.tables, original.origin);
  }

  // The copy's outputs in double.
  std::vector<double> outputs() const {
    const std::vector<double> in(inputs.inputs.begin(), inputs.inputs.end());
    std::vector<double> out(in.size());
    RoutedNetwork<double>(copy->spec, copy->parameters).forward(in.data(), 100, out.data());
    return out;
  }
};

TEST(Construction, ComputesWhatTheTablesSay) {
  for (const auto& [length, depth] : {std::pair{1, 1}, {3, 1}, {4, 2}}) {
    SCOPED_TRACE(length);
    const Copied it(length, depth, 16);
    EXPECT_EQ(it.copy->spec.real_nodes, length);
    EXPECT_EQ(it.copy->spec.nodes(), (length + 1) * (length + 1) + 1);
    EXPECT_EQ(it.copy->spec.depth, depth * layers_each(length + 1));
    int units = 0;
    for (size_t l = 0; l < it.layers.size(); ++l) {
      units = std::max(units, units_of(it.layers[l], it.chosen.sizes[l]).most());
    }
    EXPECT_EQ(it.copy->spec.mlp_width, units);
    const std::vector<double> tables =
        copy_outputs(it.network, it.layers, &it.chosen.tables, it.inputs, 1).values;
    // Weights of the file are rounded to fp32.
    EXPECT_LT(relative_error(it.outputs(), tables), 1e-4);
  }
}

TEST(Construction, ErrorFallsWithTheSquareOfTheTables) {
  const auto error = [](int pieces) {
    const Copied it(4, 2, pieces);
    return relative_error(it.outputs(), original_outputs(it.network, it.inputs));
  };
  const double at_8 = error(8), at_32 = error(32);
  EXPECT_LT(at_32, 0.01);
  EXPECT_NEAR(std::log2(at_8 / at_32), 4, 1);
}

}  // namespace
}  // namespace posattn::simulation

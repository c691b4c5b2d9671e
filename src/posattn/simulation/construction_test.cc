#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "posattn/model/routed/routed_network.h"
#include "posattn/simulation/choices.h"
#include "posattn/simulation/error_bound.h"
#include "posattn/simulation/simulate.h"
#include "posattn/simulation/standard_model_test.h"

namespace posattn::simulation {
namespace {

// A small original with its copy by tables of one size.
struct Copied {
  Model original;
  StandardNetwork network;
  KeyPlan plan;
  std::vector<FoldedLayer> layers;
  Calibration calibration;
  ChosenTables chosen;
  std::optional<Model> copy;
  Dataset inputs;

  Copied(int length, int depth, int copies, int pieces, bool causal = false, int heads = 2)
      : Copied(testing::standard_model(length, depth, 11, causal, heads), copies, pieces) {}
  Copied(Model of, int copies, int pieces)
      : original(std::move(of)),
        network(read_standard(original, "it", original.spec.real_nodes)),
        plan{network.nodes, copies, network.causal, network.rotated},
        inputs(testing::inputs_for(original, 100, Purpose::test_data)) {
    calibration = calibrate(network, testing::inputs_for(original, 150, Purpose::train_data));
    for (size_t l = 0; l < network.layers.size(); ++l) {
      layers.push_back(
          Folding(network.layers[l], calibration.words[l], l == 0, network.place_words(), plan)
              .without({1e-4, 1e-4}));
    }
    chosen = TableChooser(network, layers, calibration, plan).of_size(pieces);
    copy = construct(network, layers, chosen.tables, plan, original);
  }

  // The copy's outputs in double.
  std::vector<double> outputs() const {
    const std::vector<double> in(inputs.inputs.begin(), inputs.inputs.end());
    const int columns = copy->spec.output_columns;
    std::vector<double> out(100 * network.real_nodes * columns), read;
    RoutedNetwork<double>(copy->spec, copy->parameters)
        .forward(in.data(), 100, out.data(), 1, inputs.tokens.data());
    for (int node = 0; node < 100 * network.real_nodes; ++node) {
      const int i = node % network.real_nodes - network.first_read;
      if (i < 0 || i >= network.nodes_read) continue;
      read.insert(read.end(), &out[node * columns], &out[node * columns] + columns);
    }
    return read;
  }
  double bound() const { return error_bound(network, layers, chosen.tables, plan, calibration); }
  // For one input, without a margin.
  double bound(int64_t sample) const {
    Calibration one;
    Matrix words = first_words(network, inputs, sample);
    for (const StandardLayer& layer : network.layers) {
      Matrix next = run_layer(layer, words, network.causal, nullptr, nullptr);
      one.words.push_back({std::move(words)});
      words = std::move(next);
    }
    return error_bound(network, layers, chosen.tables, plan, one, 1, 1);
  }
  // Of every input.
  std::vector<double> largest_errors() const {
    const std::vector<double> found = outputs(), expected = original_outputs(network, inputs);
    std::vector<double> largest(inputs.samples);
    for (size_t k = 0; k < found.size(); ++k) {
      double& of_sample = largest[k / (found.size() / largest.size())];
      of_sample = std::max(of_sample, std::abs(found[k] - expected[k]));
    }
    return largest;
  }
  double largest_error() const { return std::ranges::max(largest_errors()); }
};

TEST(Construction, ComputesWhatTheTablesSay) {
  struct Case {
    int length, depth, copies, heads;
    bool causal;
  };
  for (const Case& each :
       {Case{1, 1, 2, 2, true}, Case{4, 2, 1, 2, false}, Case{4, 2, 1, 1, true},
        Case{3, 2, 3, 3, false}, Case{5, 1, 4, 2, true}, Case{2, 2, 3, 2, false}}) {
    SCOPED_TRACE(
        fmt::format("length {} copies {} causal {}", each.length, each.copies, each.causal));
    const Copied it(each.length, each.depth, each.copies, 16, each.causal, each.heads);
    const int nodes = each.length + 1;
    EXPECT_EQ(it.copy->spec.real_nodes, each.length);
    EXPECT_EQ(it.copy->spec.nodes(), nodes * each.copies + 1);
    EXPECT_EQ(it.copy->spec.depth, each.depth * it.plan.layers() + (each.copies > 1 ? 1 : 0));
    EXPECT_EQ(it.copy->spec.heads, 1);
    int units = 0;
    for (size_t l = 0; l < it.layers.size(); ++l) {
      units = std::max(units, units_of(it.layers[l], it.chosen.sizes[l], it.plan).most());
    }
    EXPECT_EQ(it.copy->spec.mlp_width, units);
    const std::vector<double> tables =
        copy_outputs(it.network, it.layers, it.chosen.tables, it.plan, it.inputs, 1).values;
    // Weights of the file are rounded to fp32.
    EXPECT_LT(relative_error(it.outputs(), tables), 1e-4);
  }
}

TEST(Construction, TakesTokens) {
  for (const testing::TokenTask& task : testing::token_tasks) {
    for (const int copies : {1, 3}) {
      SCOPED_TRACE(fmt::format("{} copies {}", task.name, copies));
      const Copied it(testing::model_of(task, 2, 5), copies, 24);
      const std::vector<double> tables =
          copy_outputs(it.network, it.layers, it.chosen.tables, it.plan, it.inputs, 1).values;
      EXPECT_LT(relative_error(it.outputs(), tables), 1e-4);
      EXPECT_LT(relative_error(tables, original_outputs(it.network, it.inputs)), 0.05);
      EXPECT_LT(it.largest_error(), it.bound());
    }
  }
}

TEST(Construction, RotatesByTheStep) {
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal);
    const Copied it(testing::rope_model(4, 2, 5, causal), 1, 48);
    EXPECT_EQ(it.copy->spec.nodes(), 6);
    EXPECT_EQ(it.copy->spec.depth, 2 * ((causal ? 5 : 9) + 3));
    int units = 0;
    for (size_t l = 0; l < it.layers.size(); ++l) {
      units = std::max(units, units_of(it.layers[l], it.chosen.sizes[l], it.plan).most());
    }
    EXPECT_EQ(it.copy->spec.mlp_width, units);
    const std::vector<double> tables =
        copy_outputs(it.network, it.layers, it.chosen.tables, it.plan, it.inputs, 1).values;
    EXPECT_LT(relative_error(it.outputs(), tables), 1e-4);
    EXPECT_LT(relative_error(tables, original_outputs(it.network, it.inputs)), 0.01);
    EXPECT_LT(it.largest_error(), it.bound());
  }
}

TEST(Construction, ErrorFallsWithTheSquareOfTheTables) {
  for (const int copies : {1, 5}) {
    const auto error = [&](int pieces) {
      const Copied it(4, 2, copies, pieces);
      return relative_error(it.outputs(), original_outputs(it.network, it.inputs));
    };
    const double at_8 = error(8), at_32 = error(32);
    EXPECT_LT(at_32, 0.01);
    EXPECT_NEAR(std::log2(at_8 / at_32), 4, 1);
  }
}

TEST(ErrorBound, IsAboveEveryError) {
  struct Case {
    int copies, depth, pieces;
  };
  for (const Case& each :
       {Case{1, 1, 6}, {5, 1, 96}, {1, 2, 64}, {2, 2, 24}, {5, 2, 8}, {2, 3, 48}}) {
    SCOPED_TRACE(fmt::format("copies {} depth {}", each.copies, each.depth));
    const Copied it(4, each.depth, each.copies, each.pieces);
    EXPECT_EQ(copy_outputs(it.network, it.layers, it.chosen.tables, it.plan, it.inputs, 1).outside,
              0);
    EXPECT_LT(it.largest_error(), it.bound());
  }
}

// Here no input hides behind another's bound, and no margin is left.
TEST(ErrorBound, IsAboveTheErrorOfEachInput) {
  std::vector<Copied> copies;
  for (const int pieces : {8, 32, 128}) {
    copies.emplace_back(4, 2, 2, pieces);
    copies.emplace_back(3, 3, 4, pieces, true);
    copies.emplace_back(testing::rope_model(3, 2, 5, false), 1, pieces);
    copies.emplace_back(testing::model_of({"one-hop", 4, true}, 2, 5), 1, pieces);
  }
  for (const Copied& it : copies) {
    const std::vector<double> errors = it.largest_errors();
    for (int64_t s = 0; s < it.inputs.samples; ++s) {
      // What is left out is bounded on calibration inputs, and weights are rounded.
      EXPECT_LT(errors[s], it.bound(s) + 1e-6);
    }
  }
}

TEST(ErrorBound, FallsWithTheTables) {
  const Copied coarse(4, 1, 2, 24), fine(4, 1, 2, 96);
  EXPECT_LT(fine.bound(), coarse.bound() / 8);
  const double deviation = standard_deviation(original_outputs(fine.network, fine.inputs));
  EXPECT_LT(fine.bound(), 0.05 * deviation);
  const Copied deep(4, 2, 2, 96);
  EXPECT_LT(deep.bound(), standard_deviation(original_outputs(deep.network, deep.inputs)));
}

}  // namespace
}  // namespace posattn::simulation

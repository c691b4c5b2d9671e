#include "posattn/bounds/gap_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/input_jacobian.h"
#include "posattn/bounds/path_norm.h"
#include "posattn/training/run_parts.h"
#include "posattn/training/small_run_test.h"

namespace posattn::bounds {
namespace {

// The sum over paths that end in unit `unit` after layer `layer`, each followed by itself.
double squared_paths(const CollapsedNetwork& network, int layer, int unit) {
  if (layer < 0) return unit == 0 ? 1 : 1.0 / network.nodes;
  const CollapsedLayer& at = network.layers[layer];
  double sum = std::pow(at.offset[unit], 2);
  for (const Matrix& map : at.maps) {
    for (int k = 0; k < at.in(); ++k) {
      sum += std::pow(map(unit, k), 2) * squared_paths(network, layer - 1, k);
    }
  }
  return sum;
}

TEST(PathNorm, IsTheSumOverAllPaths) {
  for (const char* architecture : {"positional", "standard"}) {
    const CollapsedNetwork network = testing::golden_network(
        {.architecture = architecture, .depth = 3, .width = 4, .length = 3});
    double sum = std::pow(network.output_offset, 2);
    for (size_t k = 0; k < network.output.size(); ++k) {
      sum += std::pow(network.output[k], 2) *
             squared_paths(network, static_cast<int>(network.layers.size()) - 1, int(k));
    }
    EXPECT_NEAR(log_path_norm(network), std::log(sum) / 2, 1e-12);
  }
}

TEST(PathNorm, DoesNotOverflow) {
  CollapsedNetwork network = testing::golden_network({.depth = 4});
  const double before = log_path_norm(network);
  for (CollapsedLayer& layer : network.layers) {
    for (double& value : layer.offset) value = 0;
    for (Matrix& map : layer.maps) {
      for (double& value : map.values) value *= 1e100;
    }
  }
  network.output_offset = 0;
  const double after = log_path_norm(network);
  EXPECT_TRUE(std::isfinite(after));
  EXPECT_NEAR(after, before + 400 * std::log(10.0), 0.05 * after);
}

// Offsets so large that every ReLU is on: the network is linear.
TEST(InputJacobian, OfALinearNetworkIsItsMatrix) {
  CollapsedNetwork network = testing::golden_network({.depth = 1, .width = 4, .length = 3});
  CollapsedLayer& layer = network.layers[0];
  for (double& value : layer.offset) value = 100;
  double expected = 0;
  for (int i = 0; i < network.real_nodes; ++i) {
    for (int j = 0; j < network.real_nodes; ++j) {
      double slope = 0;
      for (int r = 0; r < layer.out(); ++r) {
        double weight = i == j ? layer.maps[0](r, 0) : 0;
        for (int h = 0; h < layer.heads(); ++h) {
          weight += layer.attention[h](i, j) * layer.maps[h + 1](r, 0);
        }
        slope += network.output[r] * weight;
      }
      expected += slope * slope;
    }
  }
  const std::vector<double> x(5 * static_cast<size_t>(network.real_nodes), 0.3);
  EXPECT_NEAR(input_jacobian(network, x, 5), std::sqrt(expected), 1e-7);
}

TEST(GapMeasures, DistanceFromTheInitialWeights) {
  const RunConfig config = small_run();
  Model model = trained_model(config, initial_state(config));
  EXPECT_EQ(distance_from_start(model, config), 0);
  model.parameters["encoding.weight"][0] += 3;
  model.parameters["decoding.bias"][0] += 4;
  EXPECT_NEAR(distance_from_start(model, config), 5, 1e-5);
}

TEST(GapMeasures, OfARun) {
  const RunConfig config = small_run();
  const Model model = trained_model(config, initial_state(config));
  const GapRun run = gap_run(model, {.name = "run", .run = config, .fresh_samples = 100});
  ASSERT_EQ(run.values.size(), gap_measures().size());
  EXPECT_EQ(run.architecture, "positional");
  EXPECT_EQ(run.samples, 50);
  EXPECT_DOUBLE_EQ(run.values[0], 1.0 / 50);
  EXPECT_EQ(run.values[1], run.measured.training.mean);
  for (const double value : run.values) EXPECT_TRUE(std::isfinite(value));
}

TEST(GapMeasures, ComparesRunsThatAreAlike) {
  std::vector<GapRun> runs;
  for (int i = 0; i < 6; ++i) {
    for (const int64_t samples : {100, 1000}) {
      GapRun run;
      run.samples = samples;
      run.measured.fresh.mean = samples == 100 ? 10 + i : i;
      run.values = {samples == 100 ? 10.0 - i : 0.0 - i};  // against the order among alike runs
      runs.push_back(run);
    }
  }
  EXPECT_EQ(gap_correlation(runs, 0, Compared::same_architecture_and_samples).tau, -1);
  EXPECT_GT(gap_correlation(runs, 0, Compared::same_architecture).tau, 0);
  EXPECT_GT(gap_correlation(runs, 0, Compared::all).tau, 0);
}

}  // namespace
}  // namespace posattn::bounds

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {
namespace {

TEST(NormGrid, RoundsUpByLittle) {
  for (const double norm : {1e-30, 1e-7, 1e-6, 0.3, 1.0, 1.02, 1.7, 4e4, 1e80}) {
    const double rounded = rounded_up(std::log(norm));
    EXPECT_GE(rounded, std::log(norm));
    EXPECT_LE(rounded, std::log(std::max(norm, 1e-6) * 1.02) + 1e-9) << norm;
    EXPECT_NEAR(rounded, std::round(rounded / std::log(1.02)) * std::log(1.02), 1e-9);
  }
  EXPECT_TRUE(std::isfinite(rounded_up(log_zero)));
}

// Shares of delta over all exponents: a probability.
TEST(NormGrid, SharesAddUpToOne) {
  double sum = 0;
  constexpr int most = 200'000;
  for (int j = -most; j <= most; ++j) sum += std::exp(-grid_cost(j * std::log(1.02)));
  EXPECT_LT(sum, 1);
  EXPECT_NEAR(sum, 1, 2.0 / most);
}

TEST(NormGrid, PaysForWhatIsRead) {
  const NetworkNorms norms = testing::golden_norms({.architecture = "standard", .depth = 2});
  for (const BoundKind kind : {BoundKind::norms, BoundKind::count}) {
    const RoundedNorms rounded = on_grid(norms, kind);
    const bool by_norms = kind == BoundKind::norms;
    const LayerNorms &exact = norms.layers[1], &found = rounded.norms.layers[1];
    EXPECT_EQ(found.maps[2], rounded_up(exact.maps[2]));
    EXPECT_EQ(found.rows, by_norms ? rounded_up(exact.rows) : exact.rows);
    EXPECT_EQ(found.joined, by_norms ? exact.joined : rounded_up(exact.joined));
    double cost = grid_cost(rounded.norms.output) + grid_cost(rounded.norms.output_joined);
    for (const LayerNorms& layer : rounded.norms.layers) {
      for (const double norm : layer.maps) cost += grid_cost(norm);
      cost += grid_cost(layer.offset) + grid_cost(by_norms ? layer.rows : layer.joined);
      for (int h = 0; h < 2; ++h) {
        cost += grid_cost(layer.scores[h]) + grid_cost(layer.score_offsets[h]) +
                grid_cost(by_norms ? layer.scores_frobenius[h] : layer.scores_joined[h]);
      }
    }
    EXPECT_NEAR(rounded.cost, cost, 1e-9);
  }
}

}  // namespace
}  // namespace posattn::bounds

#include "posattn/bounds/certificate/gap_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/bounds/certificate/small_network_test.h"

namespace posattn::bounds {
namespace {

// f_i = 2 relu(3 x_i + 4 (A x)_i + 5) + 6 with A the mean over two nodes, one of them scratch.
CollapsedNetwork one_unit() {
  CollapsedLayer layer;
  layer.maps = {Matrix(1, 1), Matrix(1, 1)};
  layer.maps[0].values = {3};
  layer.maps[1].values = {4};
  layer.offset = {5};
  layer.attention = {Matrix(2, 2)};
  layer.attention[0].values = {0.5, 0.5, 0.5, 0.5};
  CollapsedNetwork network;
  network.real_nodes = 1;
  network.nodes = 2;
  network.layers = {layer};
  network.output = {2};
  network.output_offset = 6;
  return network;
}

TEST(GapMeasures, OfOneUnit) {
  EXPECT_NEAR(log_path_norm(one_unit()), std::log(2 * (3 + 4 + 5) + 6), 1e-12);
  // 2 (3 + 4 / 2) where the unit is on, nothing where it is off.
  const std::vector<float> inputs = {1, -100};
  EXPECT_NEAR(mean_jacobian_norm(one_unit(), inputs, 1), 10, 1e-6);
  EXPECT_NEAR(mean_jacobian_norm(one_unit(), inputs, 2), 5, 1e-6);
}

TEST(GapMeasures, PathNormOfADeepNetworkIsFinite) {
  CollapsedNetwork network = one_unit();
  for (double& value : network.layers[0].maps[0].values) value = 1e20;
  network.layers.resize(64, network.layers[0]);
  EXPECT_NEAR(log_path_norm(network), 64 * std::log(1e20) + std::log(2), 1e-9);
}

TEST(GapMeasures, Distance) {
  Parameters<float> a(testing::small_spec("positional")), b(a.shared_layout());
  a["decoding.weight"][0] = 3;
  b["decoding.bias"][0] = 4;
  EXPECT_EQ(distance_between(a, b), 5);
}

}  // namespace
}  // namespace posattn::bounds

#include "posattn/bounds/certificate/collapsed_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/small_network_test.h"

namespace posattn::bounds {
namespace {

using testing::small_network;
using testing::SmallData;
using testing::with_coordinates;

constexpr int samples = 5;
constexpr double clip = 0.5;

// The loss in double, by the oracle.
double oracle_loss(const CollapsedNetwork& network, const SmallData& data, bool smooth) {
  const std::vector<double> x(data.inputs.begin(), data.inputs.end());
  const std::vector<double> outputs = forward(network, x, samples);
  double sum = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const double u = std::pow(outputs[k] - data.targets[k], 2), square = clip * clip;
    sum += smooth ? u / (square + u) : std::min(u, square) / square;
  }
  return sum / static_cast<double>(outputs.size());
}

class CollapsedEngineTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Presets, CollapsedEngineTest,
                         ::testing::Values("positional", "standard", "homogeneous"));

TEST_P(CollapsedEngineTest, IsTheCollapsedNetwork) {
  const CollapsedNetwork network = small_network(GetParam(), 1);
  const Coordinates coordinates(network, std::string(GetParam()) != "homogeneous");
  const SmallData data(samples, network.real_nodes);
  CollapsedEngine engine(coordinates, samples + 2);
  const std::vector<float> weights = coordinates.values(network);
  const double loss =
      engine.loss(weights.data(), {data.inputs.data(), data.targets.data(), samples}, {clip});
  EXPECT_NEAR(loss, oracle_loss(network, data, false), 1e-5);
  const std::vector<double> expected =
      forward(network, std::vector<double>(data.inputs.begin(), data.inputs.end()), samples);
  for (int b = 0; b < samples; ++b) {
    for (int i = 0; i < network.real_nodes; ++i) {
      EXPECT_NEAR(engine.outputs()[i * samples + b], expected[b * network.real_nodes + i], 1e-5);
    }
  }
}

TEST_P(CollapsedEngineTest, GradientIsThatOfTheOracle) {
  const CollapsedNetwork network = small_network(GetParam(), 2);
  const Coordinates coordinates(network, std::string(GetParam()) != "homogeneous");
  const SmallData data(samples, network.real_nodes);
  CollapsedEngine engine(coordinates, samples);
  std::vector<float> weights = coordinates.values(network);
  RandomStream random(4, Purpose::test_data, 0, 0);
  for (float& weight : weights) weight += random.uniform(-0.3F, 0.3F);
  for (const bool smooth : {false, true}) {
    std::vector<float> gradient(weights.size(), 1.0F);  // added to, not overwritten
    engine.add_gradient(weights.data(), {data.inputs.data(), data.targets.data(), samples},
                        {clip, smooth}, gradient.data());
    double largest = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      constexpr double step = 1e-6;
      std::vector<double> moved(weights.begin(), weights.end());
      moved[k] += step;
      const double above = oracle_loss(with_coordinates(network, coordinates, moved), data, smooth);
      moved[k] -= 2 * step;
      const double below = oracle_loss(with_coordinates(network, coordinates, moved), data, smooth);
      const double expected = (above - below) / (2 * step);
      EXPECT_NEAR(gradient[k] - 1, expected, 2e-5) << "coordinate " << k;
      largest = std::max(largest, std::abs(expected));
    }
    EXPECT_GT(largest, 0.01);
  }
}

TEST(CollapsedEngine, OutputsThatAreNoNumbersAreAWholeLoss) {
  const CollapsedNetwork network = small_network("positional", 1);
  const Coordinates coordinates(network, true);
  const SmallData data(samples, network.real_nodes);
  CollapsedEngine engine(coordinates, samples);
  const std::vector<float> weights(coordinates.size(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(engine.loss(weights.data(), {data.inputs.data(), data.targets.data(), samples}, {clip}),
            1);
}

}  // namespace
}  // namespace posattn::bounds

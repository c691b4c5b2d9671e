#include "posattn/model/spec/node_positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/network.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using ::testing::ElementsAre;
using testing::random_parameters;
using testing::RandomBatch;

ModelSpec ranged(int range, int scratch_nodes = 1, int real_nodes = 8) {
  ModelSpec spec;
  spec.real_nodes = real_nodes;
  spec.scratch_nodes = scratch_nodes;
  spec.width = spec.mlp_width = 8;
  spec.depth = 2;
  spec.encoding = Encoding::sinusoidal;
  spec.encoding_size = 6;
  spec.position_range = range;
  apply_preset("standard", spec);
  return resolve(spec);
}

StepContext step(uint32_t number) { return {.seed = 5, .step = number, .training = true}; }

TEST(NodePositions, AreTheNodesThemselvesWithoutARange) {
  EXPECT_THAT(node_positions(ranged(0), 3, step(1)), ElementsAre(0, 1, 2, 8));
}

TEST(NodePositions, AreSpreadEvenlyInTests) {
  EXPECT_THAT(node_positions(ranged(19), 3, {}), ElementsAre(4, 9, 14, 19));
  EXPECT_THAT(node_positions(ranged(8), 8, {}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

// Sorted, all different, below the range, and another draw at each step.
TEST(NodePositions, AreASortedDrawInTraining) {
  const ModelSpec spec = ranged(20, 0);
  std::vector<int> before;
  for (uint32_t number = 0; number < 200; ++number) {
    const std::vector<int> places = node_positions(spec, 8, step(number));
    ASSERT_EQ(places.size(), 8U);
    EXPECT_GE(places.front(), 0);
    EXPECT_LT(places.back(), 20);
    EXPECT_TRUE(std::ranges::adjacent_find(places, std::ranges::greater_equal()) == places.end());
    EXPECT_NE(places, before);
    EXPECT_EQ(places, node_positions(spec, 8, step(number)));
    before = places;
  }
}

// All sets are equally likely: the i-th smallest of n of L places has mean (i + 1)(L + 1) / (n + 1)
// - 1, and every place is drawn with probability n / L.
TEST(NodePositions, AreDrawnEquallyOften) {
  const int n = 4, range = 11, draws = 20000;
  const ModelSpec spec = ranged(range, 0);
  std::vector<double> mean(n), square(n), count(range);
  for (int number = 0; number < draws; ++number) {
    const std::vector<int> places = node_positions(spec, n, step(number));
    for (int i = 0; i < n; ++i) {
      mean[i] += static_cast<double>(places[i]) / draws;
      square[i] += std::pow(places[i], 2) / draws;
      ++count[places[i]];
    }
  }
  for (int i = 0; i < n; ++i) {
    const double deviation = std::sqrt((square[i] - mean[i] * mean[i]) / draws);
    EXPECT_NEAR(mean[i], (i + 1) * (range + 1.0) / (n + 1) - 1, 5 * deviation);
  }
  const double share = static_cast<double>(n) / range;
  for (const double c : count) {
    EXPECT_NEAR(c / draws, share, 5 * std::sqrt(share * (1 - share) / draws));
  }
}

// A range of as many places as nodes leaves nothing to draw.
TEST(NodePositions, OfAFullRangeAreThoseOfTheNodes) {
  const ModelSpec spec = ranged(8, 0), without = ranged(0, 0);
  const Parameters<float> parameters = random_parameters(spec, 1);
  RandomStream random(1, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 5, 8, random);
  Parameters<double> gradient(spec), expected(without);
  EXPECT_EQ(reference_gradient(spec, to_double(parameters), data.reference(), {}, gradient),
            reference_gradient(without, to_double(parameters), data.reference(), {}, expected));
  EXPECT_TRUE(std::ranges::equal(gradient.values(), expected.values()));
}

// Training sees the draw of its step, tests do not, and threads change no bit.
TEST(NodePositions, OfATrainingStepAreTheSameForAnyNumberOfThreads) {
  const ModelSpec spec = ranged(64);
  const Parameters<float> parameters = random_parameters(spec, 1);
  RandomStream random(2, Purpose::test_data, 0, 0);
  RandomBatch data(spec, 33, 8, random);
  const auto gradient_at = [&](const StepContext& context, int threads) {
    data.context = context;
    Network network(spec, {.threads = threads});
    Parameters<float> gradient(spec);
    network.gradient(parameters, data.batch(), {}, gradient);
    return std::vector<float>(gradient.values().begin(), gradient.values().end());
  };
  const std::vector<float> first = gradient_at(step(7), 1);
  EXPECT_EQ(first, gradient_at(step(7), 3));
  EXPECT_NE(first, gradient_at(step(8), 1));
  EXPECT_NE(first, gradient_at({}, 1));
}

// RoPE turns by the same places.
TEST(NodePositions, TurnQueriesAndKeys) {
  ModelSpec spec = ranged(0, 0);
  spec.positions_in_input = false;
  spec.rotation = Rotation::rope;
  const auto outputs_at = [&](int range) {
    spec.position_range = range;
    const ModelSpec placed = resolve(spec);
    RandomStream random(3, Purpose::test_data, 0, 0);
    const RandomBatch data(placed, 2, 8, random);
    return reference_forward(placed, to_double(random_parameters(placed, 1)), data.reference());
  };
  const std::vector<double> plain = outputs_at(0);
  EXPECT_EQ(outputs_at(8), plain);
  EXPECT_NE(outputs_at(80), plain);
}

// A longer sample stands between the places of a shorter one, as long as there are places.
TEST(NodePositions, WorkAtOtherLengths) {
  const ModelSpec spec = ranged(64, 0);
  const auto longer = at_length(spec, 40);
  ASSERT_TRUE(longer);
  EXPECT_EQ(node_positions(*longer, 40, {}).back(), 40 * 65 / 41 - 1);
  EXPECT_FALSE(at_length(spec, 65));
}

TEST(NodePositions, NeedAFormula) {
  for (const Encoding encoding : {Encoding::one_hot, Encoding::binary, Encoding::learned}) {
    ModelSpec spec = ranged(0);
    spec.encoding = encoding;
    spec.encoding_size = 0;
    spec.position_range = 20;
    EXPECT_THROW(resolve(spec), Error);
  }
  ModelSpec none = ranged(0);
  none.positions_in_input = false;
  none.position_range = 20;
  EXPECT_THROW(resolve(none), Error);
  none.rotation = Rotation::rope;
  EXPECT_EQ(resolve(none).position_range, 20);
  none.position_range = 7;  // fewer places than nodes
  EXPECT_THROW(resolve(none), Error);
}

}  // namespace
}  // namespace posattn

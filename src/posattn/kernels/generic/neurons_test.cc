#include "posattn/kernels/generic/neurons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace posattn::generic {
namespace {

using ::testing::ElementsAre;

// Of one neuron at constant current.
std::vector<double> spikes_at(double current, int64_t steps, double gain = 1) {
  const NeuronShape shape{.samples = 1, .steps = steps, .columns = 1};
  const std::vector<double> x(steps, current);
  std::vector<double> spikes(steps);
  fire(shape, &gain, x.data(), spikes.data());
  return spikes;
}

TEST(Neurons, AreAStepFunctionAtOneStep) {
  for (const double x : {-3.0, 0.0, 1.999, 2.0, 2.001, 50.0}) {
    EXPECT_THAT(spikes_at(x, 1), ElementsAre(x / 2 >= 1 ? 1 : 0)) << x;
    EXPECT_THAT(spikes_at(x, 1, 0.5), ElementsAre(x / 4 >= 1 ? 1 : 0)) << x;
  }
}

// h tends to the current from below, so one below the threshold never fires.
TEST(Neurons, NeverFireAtAConstantCurrentBelowTheThreshold) {
  EXPECT_THAT(spikes_at(0.999999, 40), ::testing::Each(0));
}

// Without spikes h_t = x (1 - 2^-t), which 1.5 brings to 1.125 in the second step, 1.2 to 1.05 in
// the third; then the neuron starts again.
TEST(Neurons, StartAgainOnceTheyHaveFired) {
  EXPECT_THAT(spikes_at(1.5, 6), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(spikes_at(1.2, 6), ElementsAre(0, 0, 1, 0, 0, 1));
  EXPECT_THAT(spikes_at(2, 3), ElementsAre(1, 1, 1));
}

// Two steps by hand: x = 1, 3 with gain 1. h = 0.5, 1.75; only the second fires.
TEST(Neurons, HaveTheSlopeOfAnArctangentThatSkipsTheReset) {
  const NeuronShape shape{.samples = 1, .steps = 2, .columns = 1};
  const double gain = 1;
  const double x[] = {1, 3};
  double d[] = {1, 1}, dgain = 0, spikes[2];
  fire_gradient(shape, &gain, x, d, &dgain, spikes);
  EXPECT_THAT(spikes, ElementsAre(0, 1));
  const auto slope = [](double u) { return 1 / (1 + std::pow(std::numbers::pi * u, 2)); };
  const double second = slope(0.75), first = slope(-0.5) + second / 2;  // v_1 = h_1 leaks by half
  EXPECT_NEAR(d[1], second / 2, 1e-15);
  EXPECT_NEAR(d[0], first / 2, 1e-15);
  EXPECT_NEAR(dgain, first / 2 * 1 + second / 2 * 3, 1e-15);
}

// x = 3, 1: the first step fires, and nothing of the second reaches it through the reset.
TEST(Neurons, PassNoGradientThroughASpike) {
  const NeuronShape shape{.samples = 1, .steps = 2, .columns = 1};
  const double gain = 1;
  const double x[] = {3, 1};
  double d[] = {0, 1}, dgain = 0, spikes[2];
  fire_gradient(shape, &gain, x, d, &dgain, spikes);
  EXPECT_THAT(spikes, ElementsAre(1, 0));
  EXPECT_EQ(d[0], 0);
  EXPECT_GT(d[1], 0);
}

}  // namespace
}  // namespace posattn::generic

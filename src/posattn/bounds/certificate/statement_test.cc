#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/gaussians.h"
#include "posattn/bounds/certificate/posterior_training.h"
#include "posattn/bounds/certificate/small_network_test.h"

namespace posattn::bounds {
namespace {

TEST(Statement, KnownValues) {
  // Without a loss kl(0 || p) = -ln(1 - p).
  EXPECT_NEAR(expectation_bound(0, 100, 0.05), 1 - std::pow(0.05, 0.01), 1e-12);
  EXPECT_NEAR(drawn_bound(0, 10, 100, 0.05), 1 - std::exp(-(10 + std::log(20 / 0.05)) / 100),
              1e-12);
  EXPECT_EQ(randomised_bound(0.1, 10, 100, 0.05), drawn_bound(0.1, 10, 100, 0.025));
  // A draw that the prior finds likelier than the posterior does.
  EXPECT_NEAR(drawn_bound(0.2, -1e6, 100, 0.05), 0.2, 1e-7);
  // klinv(0.03, (1300 + 9.53) / 30000)
  EXPECT_NEAR(randomised_bound(0.03, 1300, 30'000, 0.05), 0.108942, 1e-6);
}

TEST(Statement, MonotoneInEverything) {
  const double bound = randomised_bound(0.05, 1000, 30'000, 0.05);
  EXPECT_GT(randomised_bound(0.06, 1000, 30'000, 0.05), bound);
  EXPECT_GT(randomised_bound(0.05, 1100, 30'000, 0.05), bound);
  EXPECT_GT(randomised_bound(0.05, 1000, 20'000, 0.05), bound);
  EXPECT_GT(randomised_bound(0.05, 1000, 30'000, 0.01), bound);
  EXPECT_GT(bound, 0.05);
}

// Networks are drawn again and again: how often is the true loss above its bound?
TEST(Statement, MonteCarloConfidenceBySimulation) {
  const CollapsedNetwork network = testing::small_network("positional", 1);
  const Coordinates coordinates(network, true);
  const testing::SmallData data(40, network.real_nodes);
  const LabelledSamples samples{data.inputs, data.targets, 40};
  const Posterior posterior{coordinates.values(network),
                            std::vector<float>(coordinates.size(), std::log(0.5F))};
  const auto mean = [&](int64_t draws, uint32_t variant) {
    double sum = 0;
    for (const double loss :
         noisy_losses(coordinates, posterior, samples,
                      {.draws = draws, .samples = 1, .clip = 1.5, .seed = 1, .variant = variant})) {
      EXPECT_GE(loss, 0);
      EXPECT_LE(loss, 1);
      sum += loss / static_cast<double>(draws);
    }
    return sum;
  };
  const double truth = mean(20'000, 1000);
  constexpr int repeats = 400, draws = 20;
  constexpr double delta = 0.2;
  int wrong = 0, tight = 0;
  for (uint32_t r = 0; r < repeats; ++r) {
    const double found = mean(draws, r);
    if (expectation_bound(found, draws, delta) < truth) ++wrong;
    if (found < truth) ++tight;  // without a margin it is wrong half of the time
  }
  EXPECT_LE(wrong, delta * repeats);
  EXPECT_GT(tight, 0.3 * repeats);
}

TEST(NoisyLoss, ExpectationIsTheLossOnAllSamples) {
  const CollapsedNetwork network = testing::small_network("standard", 1);
  const Coordinates coordinates(network, true);
  const testing::SmallData data(1234, network.real_nodes);
  const LabelledSamples samples{data.inputs, data.targets, 1234};
  const std::vector<float> weights = coordinates.values(network);
  const Posterior certain{weights, std::vector<float>(weights.size(), -30)};
  double mean = 0;
  const std::vector<double> losses =
      noisy_losses(coordinates, certain, samples, {.draws = 1000, .clip = 1.5, .seed = 2});
  for (const double loss : losses) mean += loss / 1000;
  const double exact = loss_on(coordinates, weights, samples, 1.5, 1);
  EXPECT_NEAR(mean, exact, 0.02);
  EXPECT_EQ(loss_on(coordinates, weights, samples, 1.5, 3), exact);
  EXPECT_EQ(noisy_losses(coordinates, certain, samples,
                         {.draws = 1000, .clip = 1.5, .seed = 2, .threads = 3}),
            losses);
}

TEST(Noise, IsStandardNormal) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  std::vector<float> numbers(99'999);
  fill_normal(random, numbers);
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const double x = numbers[k];
    mean += x;
    square += x * x;
    fourth += x * x * x * x;
    if (k > 0) neighbours += x * numbers[k - 1];
  }
  const auto count = static_cast<double>(numbers.size());
  EXPECT_NEAR(mean / count, 0, 0.015);
  EXPECT_NEAR(square / count, 1, 0.02);
  EXPECT_NEAR(fourth / count, 3, 0.15);
  EXPECT_NEAR(neighbours / count, 0, 0.015);
}

}  // namespace
}  // namespace posattn::bounds

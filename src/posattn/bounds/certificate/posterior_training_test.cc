#include "posattn/bounds/certificate/posterior_training.h"

#include <gtest/gtest.h>

#include "posattn/bounds/certificate/gaussians.h"
#include "posattn/bounds/certificate/small_network_test.h"

namespace posattn::bounds {
namespace {

class PosteriorTrainingTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Presets, PosteriorTrainingTest,
                         ::testing::Values("positional", "standard"));

TEST_P(PosteriorTrainingTest, LowersTheBoundWhateverTheThreads) {
  const CollapsedNetwork initial = testing::small_network(GetParam(), 1),
                         trained = testing::small_network(GetParam(), 2);
  const Coordinates coordinates(initial, true);
  const GaussianPrior prior(coordinates.groups(), coordinates.values(initial));
  const testing::SmallData data(200, initial.real_nodes);
  PosteriorTraining options;
  options.steps = 150;
  options.samples = 10;
  options.seed = 1;
  std::vector<Posterior> found;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    std::vector<PosteriorProgress> progress;
    options.progress = [&](const PosteriorProgress& step) { progress.push_back(step); };
    found.push_back(train_posterior(coordinates, prior, coordinates.values(trained),
                                    {data.inputs, data.targets, 200}, options));
    ASSERT_EQ(progress.size(), 150U);
    EXPECT_EQ(progress.back().step, 150);
    EXPECT_LT(progress.back().divergence, 0.5 * progress.front().divergence);
    EXPECT_LT(progress.back().bound, progress.front().bound);
  }
  EXPECT_EQ(found[0].mean, found[1].mean);
  EXPECT_EQ(found[0].log_deviation, found[1].log_deviation);
}

// Steps so large that they leave a good posterior: it comes back to it.
TEST(PosteriorTraining, ReturnsFromStepsThatWereTooLarge) {
  const CollapsedNetwork initial = testing::small_network("positional", 1),
                         trained = testing::small_network("positional", 2);
  const Coordinates coordinates(initial, true);
  const GaussianPrior prior(coordinates.groups(), coordinates.values(initial));
  const testing::SmallData data(2000, initial.real_nodes);
  const LabelledSamples samples{data.inputs, data.targets, 2000};
  PosteriorTraining options;
  options.steps = 3000;
  options.samples = 10;
  options.rate = 3;
  options.deviation_rate = 0.3;
  options.clip = 2;
  const Posterior found =
      train_posterior(coordinates, prior, coordinates.values(trained), samples, options);
  double loss = 0;
  for (const double one : noisy_losses(coordinates, found, samples, {.draws = 1000, .clip = 2})) {
    loss += one / 1000;
  }
  const double bound = randomised_bound(loss, prior.divergence(found, prior.best_variances(found)),
                                        2000, options.delta);
  EXPECT_LT(bound, 0.25);  // 1 where it does not come back
}

TEST(PosteriorTraining, EndsWhenAsked) {
  const CollapsedNetwork initial = testing::small_network("positional", 1);
  const Coordinates coordinates(initial, true);
  const GaussianPrior prior(coordinates.groups(), coordinates.values(initial));
  const testing::SmallData data(20, initial.real_nodes);
  const std::atomic<bool> stop{true};
  PosteriorTraining options;
  options.stop = &stop;
  const std::vector<float> start = coordinates.values(testing::small_network("positional", 2));
  EXPECT_EQ(
      train_posterior(coordinates, prior, start, {data.inputs, data.targets, 20}, options).mean,
      start);
}

}  // namespace
}  // namespace posattn::bounds

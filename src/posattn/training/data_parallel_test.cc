#include "posattn/training/data_parallel.h"

#include <gmock/gmock.h>

#include <array>
#include <mutex>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/model/random_spec_test.h"
#include "posattn/mpi/thread_ranks_test.h"
#include "posattn/training/data_parallel_steps.h"
#include "posattn/training/token_task_test.h"

namespace posattn {
namespace {

TEST(DataParallel, PartsOfABatch) {
  const std::vector<float> inputs = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Batch whole{.inputs = inputs, .samples = 5, .real_nodes = 2};
  int64_t samples = 0;
  for (int part = 0; part < 3; ++part) {
    const Batch batch = part_of(whole, part, 3);
    EXPECT_EQ(batch.inputs.front(), static_cast<float>(2 * samples));
    EXPECT_EQ(std::ssize(batch.inputs), 2 * batch.samples);
    samples += batch.samples;
  }
  EXPECT_EQ(samples, 5);
  EXPECT_EQ(part_of(Batch{.inputs = {}, .samples = 1, .real_nodes = 1}, 0, 2).samples, 0);
}

TEST(DataParallel, TermsOfALoss) {
  const std::vector<int32_t> labels = {0, -1, 2, 1, 1, -1};
  const std::vector<uint8_t> mask = {1, 1, 0, 0, 1, 1};  // three nodes of two columns
  const Batch batch{.samples = 2, .real_nodes = 3, .labels = labels};
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.output_columns = 2;
  EXPECT_EQ(terms_of(spec, batch, mask), 2);
  spec.loss = Loss::cross_entropy;
  EXPECT_EQ(terms_of(spec, batch, {}), 4);
  EXPECT_EQ(terms_of(spec, batch, mask), 3);
  spec.read_nodes = 1;
  EXPECT_EQ(terms_of(spec, batch, mask), 2);
}

// What `size` ranks find for a batch must be what one finds, also with more ranks than samples and
// with parts whose nodes do not count.
void expect_same_gradient(const ModelSpec& spec, int64_t samples, int size) {
  const Parameters<float> parameters = testing::random_parameters(spec, 3);
  RandomStream random(5, Purpose::initial_values, 2, 0);
  testing::RandomBatch values(spec, samples, spec.real_nodes, random);
  Parameters<float> expected(spec);
  const double loss = Network(spec).gradient(parameters, values.batch(), values.mask, expected);
  std::mutex mutex;
  in_ranks(size, [&](Ranks& ranks) {
    Network network(spec);
    Parameters<float> gradient(spec);
    DataParallelSteps steps(ranks);
    const auto found =
        steps.gradient(network, parameters, values.batch(), values.mask, false, gradient);
    steps.check_equal(gradient);
    const std::lock_guard lock(mutex);
    ASSERT_TRUE(found);
    EXPECT_NEAR(*found, loss, 1e-6 * (1 + loss));
    for (std::size_t i = 0; i < gradient.values().size(); ++i) {
      ASSERT_NEAR(gradient.values()[i], expected.values()[i], 1e-5) << i;
    }
  });
}

TEST(DataParallel, TheGradientOfTheWholeBatch) {
  RandomStream random(1, Purpose::initial_values, 0, 0);
  for (int i = 0; i < 8; ++i) {
    const ModelSpec spec = testing::random_open_spec(random);
    expect_same_gradient(spec, 7, 3);
    expect_same_gradient(spec, 2, 4);
  }
}

TEST(DataParallel, AllStopInTheSameStep) {
  ModelSpec spec;
  spec.real_nodes = 2;
  spec = resolve(spec);
  in_ranks(3, [&](Ranks& ranks) {
    Network network(spec);
    const Parameters<float> parameters = testing::random_parameters(spec, 3);
    Parameters<float> gradient(spec);
    const std::array<float, 4> values = {};
    const Batch batch{.inputs = values, .targets = values, .samples = 2, .real_nodes = 2};
    DataParallelSteps steps(ranks);
    EXPECT_TRUE(steps.gradient(network, parameters, batch, {}, false, gradient));
    if (ranks.rank() == 2) {
      steps.withdraw(parameters.layout());
    } else {
      EXPECT_FALSE(steps.gradient(network, parameters, batch, {}, ranks.rank() == 1, gradient));
    }
    Parameters<float> changed = parameters;
    changed.values()[0] += static_cast<float>(ranks.rank());
    EXPECT_THROW(steps.check_equal(changed), Error);
  });
}

std::vector<RunOutcome> train_in(int size, const RunConfig& config,
                                 const std::filesystem::path& out) {
  std::vector<RunOutcome> outcomes;
  in_ranks(size, [&](Ranks& ranks) {
    FleetOptions options;
    options.out = out;
    options.resume = true;
    DataParallelFleet fleet({config}, options, ranks);
    const std::vector<RunOutcome> mine = fleet.train();
    if (ranks.rank() == 0) outcomes = mine;
  });
  return outcomes;
}

void expect_same_run(RunConfig config) {
  const TemporaryFolder folder;
  FleetOptions options;
  options.out = folder.path() / "one";
  const RunOutcome alone = train_fleet({config}, options).front();
  const RunOutcome two = train_in(2, config, folder.path() / "two").front();
  ASSERT_EQ(two.status, RunStatus::done) << two.message;
  EXPECT_NEAR(two.last->train_loss, alone.last->train_loss, 1e-5);
  // In two sittings and with the same ranks: the same bits.
  const int64_t epochs = config.epochs;
  config.epochs = 2;
  train_in(2, config, folder.path() / "resumed");
  config.epochs = epochs;
  const RunOutcome resumed = train_in(2, config, folder.path() / "resumed").front();
  EXPECT_EQ(resumed.last->train_loss, two.last->train_loss);
  EXPECT_TRUE(train_in(2, config, folder.path() / "two").front().already_done);
}

TEST(DataParallel, ARunOfNumbers) { expect_same_run(small_run()); }
TEST(DataParallel, ARunOfTokens) { expect_same_run(small_token_run()); }

TEST(DataParallel, EveryRankNeedsTheDevice) {
  if (device_info().usable) GTEST_SKIP() << "there is a GPU";
  const TemporaryFolder folder;
  FleetOptions options;
  options.out = folder.path() / "out";
  in_ranks(2, [&](Ranks& ranks) {
    RunConfig config = small_run();
    config.device = "cuda";
    EXPECT_THROW(DataParallelFleet({config}, options, ranks), Error);
    config.device = "auto";  // rank 0 chooses, or says why it cannot
    config.precision = "auto";
    EXPECT_EQ(DataParallelFleet({config}, options, ranks).device(), "cpu");
  });
}

}  // namespace
}  // namespace posattn

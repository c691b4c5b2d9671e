// Runs that several ranks train together on one GPU. Ranks are threads here, which a GPU does not
// allow: while one records its step, nobody may use the default stream. There they are processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "posattn/base/temporary_folder_test.h"
#include "posattn/mpi/thread_ranks_test.h"
#include "posattn/training/data_parallel.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/token_task_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

RunConfig on_device(RunConfig config) {
  config.device = "cuda";
  config.epochs = 4;
  return config;
}

FleetOptions options_for(const fs::path& out) {
  FleetOptions options;
  options.out = out;
  options.resume = true;
  return options;
}

// With `stop_at`, the last rank wishes to stop once rank 0 has recorded that epoch.
RunOutcome train_on(int size, const RunConfig& config, const fs::path& out, int64_t stop_at = 0) {
  RunOutcome outcome;
  std::atomic<bool> stop = false;
  in_ranks(size, [&](Ranks& ranks) {
    FleetOptions options = options_for(out);
    if (ranks.rank() == size - 1) options.stop = &stop;
    options.progress = [&](const RunProgress& progress) {
      if (stop_at > 0 && progress.epoch == stop_at) stop = true;
    };
    DataParallelFleet fleet({config}, options, ranks);
    const std::vector<RunOutcome> mine = fleet.train();
    if (ranks.rank() == 0) outcome = mine.front();
  });
  return outcome;
}

std::vector<EpochRecord> records(const fs::path& folder) {
  std::vector<EpochRecord> found;
  std::istringstream lines(text_of(folder / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    found.push_back(epoch_record_from_json(line));
  }
  return found;
}

// The losses of one process with the same batches; and the same bits in two sittings.
void expect_same_run(const RunConfig& config, int size) {
  const TemporaryFolder folder;
  const RunOutcome alone = train_fleet({config}, options_for(folder.path() / "alone")).front();
  const RunOutcome together = train_on(size, config, folder.path() / "together");
  ASSERT_EQ(together.status, RunStatus::done) << together.message;
  const auto expected = records(alone.folder), found = records(together.folder);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].step, expected[i].step);
    EXPECT_NEAR(found[i].train_loss, expected[i].train_loss, 1e-4 * expected[i].train_loss);
    ASSERT_EQ(found[i].validation_loss.has_value(), expected[i].validation_loss.has_value());
    EXPECT_NEAR(found[i].validation_loss.value_or(0), expected[i].validation_loss.value_or(0),
                1e-3);
    EXPECT_EQ(found[i].tests.size(), expected[i].tests.size());
  }
  const Manifest manifest = manifest_from_json(text_of(together.folder / "manifest.json"), "m");
  EXPECT_EQ(manifest.engine.at("device"), "cuda");
  EXPECT_EQ(manifest.engine.at("ranks"), std::to_string(size));

  const RunOutcome cut = train_on(size, config, folder.path() / "resumed", 2);
  ASSERT_EQ(cut.status, RunStatus::interrupted) << cut.message;
  EXPECT_EQ(cut.epoch, 2);
  const RunOutcome resumed = train_on(size, config, folder.path() / "resumed");
  EXPECT_EQ(metrics_of(resumed.folder), metrics_of(together.folder));
  EXPECT_EQ(text_of(resumed.folder / "model.safetensors"),
            text_of(together.folder / "model.safetensors"));
  EXPECT_TRUE(train_on(size, config, folder.path() / "together").already_done);
}

TEST(DataParallelOnDevice, ARunOfNumbers) { expect_same_run(on_device(small_run()), 2); }

// The last batch has two samples: one rank has none.
TEST(DataParallelOnDevice, MoreRanksThanSamples) {
  RunConfig config = on_device(small_run());
  config.batch = 24;
  config.clip = 0.5;
  config.fresh = true;
  expect_same_run(config, 3);
}

// Batches of 20 labelled samples, of which the ranks have 6, 7 and 7.
TEST(DataParallelOnDevice, ARunOfTokens) { expect_same_run(on_device(small_token_run()), 3); }

TEST(DataParallelOnDevice, LengthsThatVary) {
  RunConfig config = on_device(small_run());
  config.variable_length = true;
  config.batch = 7;
  expect_same_run(config, 2);
}

TEST(DataParallelOnDevice, ADivergenceIsEverybodys) {
  const TemporaryFolder folder;
  RunConfig config = on_device(small_run());
  config.lr = 1e30;
  const RunOutcome alone = train_fleet({config}, options_for(folder.path() / "alone")).front();
  const RunOutcome together = train_on(2, config, folder.path() / "together");
  EXPECT_EQ(together.status, RunStatus::diverged);
  EXPECT_EQ(together.epoch, alone.epoch);
}

}  // namespace
}  // namespace posattn

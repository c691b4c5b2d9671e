#include "posattn/experiments/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/experiments/runner.h"
#include "posattn/results/results_database.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MergeTest : public testing::Test {
 protected:
  static std::vector<ExperimentRun> few_runs() {
    std::vector<ExperimentRun> runs;
    for (const int64_t seed : {0, 1, 2, 3}) {
      RunConfig config = small_run();
      config.seed = seed;
      runs.push_back({config.task, "positional", std::nullopt, config, run_key(config)});
    }
    return runs;
  }
  fs::path results() const { return folder_.path() / "results"; }
  GridSummary train(const std::optional<Shard>& shard, const std::string& name = "results") const {
    RunnerOptions options;
    options.results = folder_.path() / name;
    options.shard = shard;
    return run_experiment(few_runs(), options);
  }
  // Everything that does not depend on time.
  static std::vector<std::string> rows(const ResultsDatabase& database) {
    std::vector<std::string> texts;
    for (RunResult result : database.all()) {
      result.seconds = 0;
      result.ended.clear();
      texts.push_back(result.key + result.configuration + checksum_of(result));
    }
    return texts;
  }
  std::vector<std::string> rows_in(const std::string& name) const {
    return rows(ResultsDatabase(folder_.path() / name, ResultsDatabase::Access::read));
  }
  // A result that nobody trained, in the shard.
  void change(const Shard& shard, const std::function<void(RunResult&)>& by) const {
    ResultsDatabase database(shard_folder(results(), shard), ResultsDatabase::Access::write);
    RunResult result = database.all().front();
    by(result);
    database.record(result);
  }
  TemporaryFolder folder_;
};

TEST_F(MergeTest, TwoShardsAreOneRunOfEverything) {
  train({}, "whole");
  EXPECT_EQ(train(Shard{0, 2}).done, 2);
  EXPECT_FALSE(fs::exists(results() / "results.db"));
  EXPECT_EQ(train(Shard{1, 2}).done, 2);
  EXPECT_EQ(rows(open_results(results())), rows_in("whole"));  // without a merge
  EXPECT_EQ(train(Shard{1, 3}).done, 0);  // other shards have what this one would train

  const MergeSummary summary = merge_shards(results());
  EXPECT_EQ(summary.shards, 3);
  EXPECT_EQ(summary.added, 4);
  EXPECT_EQ(summary.folders, 4);
  EXPECT_TRUE(summary.conflicts.empty());
  EXPECT_TRUE(summary.problems.empty());
  EXPECT_EQ(rows_in("results"), rows_in("whole"));
  for (const ExperimentRun& run : few_runs()) {
    const fs::path ours = results() / "runs" / run.key;
    EXPECT_EQ(metrics_of(ours), metrics_of(folder_.path() / "whole/runs" / run.key));
    EXPECT_TRUE(fs::exists(ours / "model.safetensors"));
    EXPECT_FALSE(fs::exists(ours / "lock"));
  }
  fs::remove_all(results() / "shards");
  const GridSummary after = train({});
  EXPECT_EQ(after.there, 4);
  EXPECT_EQ(after.done, 0);
}

TEST_F(MergeTest, WhoeverTrainsTheRestMergesFirst) {
  train(Shard{0, 2});
  const GridSummary summary = train({});
  EXPECT_EQ(summary.there, 2);
  EXPECT_EQ(summary.done, 2);
  EXPECT_EQ(train(Shard{1, 2}).there, 2);
  EXPECT_EQ(merge_shards(results()).added, 0);
}

TEST_F(MergeTest, AnExperimentOfAnyNameKeepsItsFolder) {
  train(Shard{0, 2});
  fs::create_directories(results() / "merging");
  write_file(results() / "merging" / "merging.csv", "results");
  EXPECT_EQ(merge_shards(results()).folders, 2);
  EXPECT_EQ(text_of(results() / "merging" / "merging.csv"), "results");
}

TEST_F(MergeTest, KilledAnywhereItIsRepeated) {
  train(Shard{0, 2});
  train(Shard{1, 2});
  const std::string first = few_runs()[0].key, second = few_runs()[1].key;
  // Killed when one folder was there and the next half-way, before any result was recorded.
  fs::create_directories(results() / "runs");
  fs::copy(shard_folder(results(), {0, 2}) / "runs" / first, results() / "runs" / first);
  fs::create_directories(results() / ".merging" / "run");
  write_file(results() / ".merging" / "run" / "config.toml", "half");
  const MergeSummary summary = merge_shards(results());
  EXPECT_EQ(summary.added, 4);
  EXPECT_EQ(summary.folders, 3);
  EXPECT_FALSE(fs::exists(results() / ".merging"));
  EXPECT_NE(text_of(results() / "runs" / second / "config.toml"), "half");
  const MergeSummary again = merge_shards(results());
  EXPECT_EQ(again.added, 0);
  EXPECT_EQ(again.there, 4);
  EXPECT_EQ(again.folders, 0);
}

TEST_F(MergeTest, TheFirstOfTwoResultsIsKept) {
  train(Shard{0, 2});
  merge_shards(results());
  const std::vector<std::string> before = rows_in("results");
  change({0, 2}, [](RunResult& result) { result.seconds += 1; });  // no other result
  EXPECT_TRUE(merge_shards(results()).conflicts.empty());
  change({0, 2}, [](RunResult& result) { result.measurements.front().value += 1e-9; });
  const MergeSummary summary = merge_shards(results());
  ASSERT_EQ(summary.conflicts.size(), 1u);
  EXPECT_EQ(summary.conflicts[0].kept, results() / "results.db");
  EXPECT_EQ(summary.conflicts[0].other, results() / "shards/0-of-2/results.db");
  EXPECT_THAT(summary.conflicts[0].message, HasSubstr("the first is kept"));
  EXPECT_EQ(rows_in("results"), before);
  std::vector<std::string> notices;
  open_results(results(), [&](const std::string& line) { notices.push_back(line); });
  EXPECT_EQ(notices.size(), 1u);
}

TEST_F(MergeTest, AShardThatCannotBeTrustedIsNamedAndLeftOut) {
  for (const int64_t number : {0, 1, 2, 3}) train(Shard{number, 4});
  write_file(shard_folder(results(), {0, 4}) / "results.db",
             text_of(shard_folder(results(), {0, 4}) / "results.db").substr(0, 5000));
  change({1, 4}, [](RunResult& result) { result.key = "../../../elsewhere"; });
  change({2, 4}, [](RunResult& result) {  // not merged, and no reason to leave the shard out
    result.key = "other";
    result.status = RunStatus::failed;
  });
  const MergeSummary summary = merge_shards(results());
  EXPECT_EQ(summary.shards, 2);
  EXPECT_EQ(summary.added, 2);
  ASSERT_EQ(summary.problems.size(), 2u);
  EXPECT_EQ(summary.problems[0].place, shard_folder(results(), {0, 4}));
  EXPECT_EQ(summary.problems[1].place, shard_folder(results(), {1, 4}));
  EXPECT_THAT(summary.problems[1].message, HasSubstr("elsewhere"));
}

TEST_F(MergeTest, TakesFinishedFoldersAndNoLinks) {
  train(Shard{0, 4});
  const std::string key = few_runs()[0].key;
  const fs::path run = shard_folder(results(), {0, 4}) / "runs" / key;
  write_file(run / "something.else", "");
  fs::remove(run / "config.toml");
  fs::create_symlink("/etc/passwd", run / "config.toml");
  // DIR has begun the same run.
  std::string manifest = text_of(run / "manifest.json");
  manifest.replace(manifest.find("\"done\""), 6, "\"interrupted\"");
  fs::create_directories(results() / "runs" / key);
  write_file(results() / "runs" / key / "manifest.json", manifest);
  EXPECT_EQ(merge_shards(results()).folders, 1);
  EXPECT_TRUE(fs::exists(results() / "runs" / key / "model.safetensors"));
  EXPECT_FALSE(fs::exists(results() / "runs" / key / "something.else"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(results() / "runs" / key / "config.toml")));
}

TEST_F(MergeTest, NeedsShardsAndTheFolderForItself) {
  EXPECT_THROW(merge_shards(results()), Error);
  train(Shard{0, 2});
  const FolderLock shard(shard_folder(results(), {0, 2}));  // as while it trains
  EXPECT_THROW(train(Shard{0, 2}), Error);
  EXPECT_EQ(merge_shards(results()).added, 2);
  const FolderLock whole(results());
  EXPECT_THROW(merge_shards(results()), Error);
}

}  // namespace
}  // namespace posattn

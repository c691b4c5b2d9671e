#include "posattn/experiments/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/results/results_database.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ExperimentRun wanted_run(const RunConfig& config) {
  return {config.task, config.architecture, std::nullopt, config, run_key(config)};
}

class RunnerTest : public testing::Test {
 protected:
  // Two tasks, two architectures, two seeds.
  static std::vector<ExperimentRun> grid() {
    std::vector<ExperimentRun> runs;
    for (const char* task : {"cumulative-sum", "sort"}) {
      for (const char* architecture : {"positional", "standard"}) {
        for (const int64_t seed : {0, 1}) {
          RunConfig config = small_run();
          config.task = task;
          config.architecture = architecture;
          config.seed = seed;
          runs.push_back(wanted_run(config));
        }
      }
    }
    return runs;
  }
  RunnerOptions options(const std::string& name = "results") const {
    RunnerOptions result;
    result.results = folder_.path() / name;
    return result;
  }
  fs::path folder_of(const ExperimentRun& run, const std::string& name = "results") const {
    return folder_.path() / name / "runs" / run.key;
  }
  // Losses and tests by key: what must not depend on how the runs came about.
  std::map<std::string, std::vector<double>> results(const std::string& name = "results") const {
    std::map<std::string, std::vector<double>> values;
    for (const RunResult& result :
         ResultsDatabase(folder_.path() / name, ResultsDatabase::Access::read).all()) {
      EXPECT_EQ(result.status, RunStatus::done) << result.message;
      auto& of_run = values[result.key];
      for (const Measurement& row : result.measurements) {
        if (row.metric == "mse") of_run.push_back(row.value);
      }
    }
    return values;
  }
  RunResult result_of(const ExperimentRun& run) const {
    return ResultsDatabase(folder_.path() / "results", ResultsDatabase::Access::read)
        .find(run.key)
        .value();
  }
  void forget(const ExperimentRun& run) const {  // as if killed before it was recorded
    ResultsDatabase database(folder_.path() / "results", ResultsDatabase::Access::write);
    RunResult result = database.find(run.key).value();
    result.status = RunStatus::failed;
    database.record(result);
  }
  TemporaryFolder folder_;
};

TEST_F(RunnerTest, TrainsWhatIsMissingAndNothingElse) {
  std::vector<ExperimentRun> runs = grid();
  const std::vector<ExperimentRun> some(runs.begin() + 2, runs.begin() + 5);
  const GridSummary first = run_experiment(some, options());
  EXPECT_EQ(first.runs, 3);
  EXPECT_EQ(first.done, 3);
  EXPECT_EQ(first.there, 0);
  const auto written = fs::last_write_time(folder_of(some[0]) / "manifest.json");
  runs.push_back(runs.front());  // a run that two lines share
  RunnerOptions all = options();
  GridSurvey found;
  all.found = [&](const GridSurvey& survey) { found = survey; };
  const GridSummary second = run_experiment(runs, all);
  EXPECT_EQ(second.runs, 8);
  EXPECT_EQ(second.there, 3);
  EXPECT_EQ(second.done, 5);
  EXPECT_EQ(second.interrupted, 0);
  EXPECT_EQ(found.runs, 8);
  EXPECT_EQ(found.done, 3);
  EXPECT_EQ(found.missing(), 5);
  EXPECT_EQ(fs::last_write_time(folder_of(some[0]) / "manifest.json"), written);
  const auto values = results();
  EXPECT_EQ(values.size(), 8u);
  for (const auto& [key, of_run] : values) EXPECT_EQ(of_run.size(), 4u) << key;
}

TEST_F(RunnerTest, RecordsWhatTheRunGave) {
  const std::vector<ExperimentRun> runs = {grid().front()};
  run_experiment(runs, options());
  const RunResult result = result_of(runs[0]);
  EXPECT_EQ(result.epochs, 6);
  EXPECT_EQ(result.steps, 18);
  EXPECT_EQ(result.device, "cpu");
  EXPECT_FALSE(result.version.empty());
  EXPECT_FALSE(result.ended.empty());
  EXPECT_GT(result.seconds, 0);
  EXPECT_THAT(result.configuration, HasSubstr("cumulative-sum"));
  const std::string manifest = text_of(folder_of(runs[0]) / "manifest.json");
  const EpochRecord last = epoch_record_from_json(manifest_from_json(manifest, "m").final_metrics);
  const auto loss = [&](Split split) {
    return find_value(result.measurements, {.split = split, .metric = "mse"});
  };
  EXPECT_EQ(loss(Split::train), last.train_loss);
  EXPECT_EQ(loss(Split::validation), last.validation_loss);
  EXPECT_THAT(tested_values(result.measurements, "c"), testing::ElementsAre(1, 3));
  const MeasuredPlace outside{.axis = "c", .x = 3, .metric = "mse"};
  EXPECT_EQ(find_value(result.measurements, outside), find_value(last.tests, outside));
}

// Each result is in the database, whole, before the next run begins.
TEST_F(RunnerTest, RecordsARunAtOnce) {
  const std::vector<ExperimentRun> runs = grid();
  RunnerOptions watched = options();
  int64_t most = 0;
  watched.progress = [&](const GridProgress& progress) {
    const ResultsDatabase database(watched.results, ResultsDatabase::Access::read);
    EXPECT_EQ(static_cast<int64_t>(database.all().size()), progress.ended);
    most = std::max(most, progress.ended);
  };
  run_experiment(runs, watched);
  EXPECT_EQ(most, 8);
}

TEST_F(RunnerTest, AnInterruptedGridGoesOnToTheSameResults) {
  const std::vector<ExperimentRun> runs = grid();
  run_experiment(runs, options("straight"));
  int64_t interrupted = 8;
  for (int sitting = 0; interrupted > 0; ++sitting) {
    ASSERT_LT(sitting, 40);
    std::atomic<bool> stop = false;
    RunnerOptions some = options();
    some.threads = 1 + sitting % 2;
    some.stop = &stop;
    int calls = 0;
    some.progress = [&](const GridProgress&) {
      if (++calls < 7) return;
      stop = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // until the wish is seen
    };
    const GridSummary summary = run_experiment(runs, some);
    EXPECT_EQ(summary.there + summary.done + summary.interrupted, 8);
    EXPECT_TRUE(summary.failures.empty());
    interrupted = summary.interrupted;
    EXPECT_TRUE(sitting > 0 || interrupted > 0);
  }
  EXPECT_EQ(results(), results("straight"));
}

TEST_F(RunnerTest, RecordsARunThatEndedBeforeAKill) {
  const std::vector<ExperimentRun> runs = {grid().front()};
  run_experiment(runs, options());
  const auto before = results();
  fs::remove(folder_.path() / "results" / "results.db");
  fs::remove(folder_of(runs[0]) / "checkpoint.safetensors");  // so that training would show
  const GridSummary summary = run_experiment(runs, options());
  EXPECT_EQ(summary.there, 1);
  EXPECT_EQ(summary.done, 0);
  EXPECT_EQ(results(), before);
  EXPECT_FALSE(fs::exists(folder_of(runs[0]) / "checkpoint.safetensors"));
}

TEST_F(RunnerTest, ADivergedRunIsAResult) {
  std::vector<ExperimentRun> runs = grid();
  runs[1].config.lr = 1e25;
  runs[1].key = run_key(runs[1].config);
  const GridSummary summary = run_experiment(runs, options());
  EXPECT_EQ(summary.done, 7);
  EXPECT_EQ(summary.diverged, 1);
  EXPECT_TRUE(summary.failures.empty());
  const RunResult result = result_of(runs[1]);
  EXPECT_EQ(result.status, RunStatus::diverged);
  EXPECT_THAT(result.message, HasSubstr("in epoch"));
  EXPECT_TRUE(result.measurements.empty());
  EXPECT_EQ(run_experiment(runs, options()).there, 8);
  const GridSurvey found = whole_of(survey(options().results, runs));
  EXPECT_EQ(found.done, 7);
  EXPECT_EQ(found.diverged, 1);
  fs::remove(folder_.path() / "results" / "results.db");
  EXPECT_EQ(run_experiment(runs, options()).there, 8);
  EXPECT_EQ(result_of(runs[1]).status, RunStatus::diverged);
}

// A checkpoint that cannot be read, a manifest that is none, and a folder of something else.
TEST_F(RunnerTest, ABrokenFolderFailsAloneAndIsTriedAgain) {
  const std::vector<ExperimentRun> runs = grid();
  std::atomic<bool> stop = true;
  {
    RunnerOptions first = options();
    first.stop = &stop;
    stop = false;
    first.progress = [&](const GridProgress& progress) {
      if (progress.step < 9) return;
      stop = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    };
    run_experiment({runs[0]}, first);
  }
  const fs::path checkpoint = folder_of(runs[0]) / "checkpoint.safetensors";
  ASSERT_TRUE(fs::exists(checkpoint));
  const std::string whole = text_of(checkpoint);
  write_file(checkpoint, whole.substr(0, 100));
  fs::create_directories(folder_of(runs[3]));
  write_file(folder_of(runs[3]) / "manifest.json", "{");
  fs::create_directories(folder_of(runs[5]));
  write_file(folder_of(runs[5]) / "notes.txt", "mine");
  for (int sitting = 0; sitting < 2; ++sitting) {
    const GridSummary summary = run_experiment(runs, options());
    EXPECT_EQ(summary.there + summary.done, 5);
    ASSERT_EQ(summary.failures.size(), 3u);
    EXPECT_EQ(summary.failures[0].folder, folder_of(runs[3]));
    EXPECT_THAT(summary.failures[0].message, HasSubstr("manifest.json"));
    EXPECT_THAT(summary.failures[1].message, HasSubstr("something else"));
    EXPECT_THAT(summary.failures[1].message, testing::Not(HasSubstr("--out")));
    EXPECT_THAT(summary.failures[2].message, HasSubstr("checkpoint.safetensors"));
    EXPECT_EQ(result_of(runs[0]).status, RunStatus::failed);
    EXPECT_EQ(whole_of(survey(options().results, runs)).failed, 3);
  }
  write_file(checkpoint, whole);
  for (const int run : {3, 5}) fs::remove_all(folder_of(runs[static_cast<std::size_t>(run)]));
  EXPECT_EQ(run_experiment(runs, options()).done, 3);
  run_experiment(runs, options("straight"));
  EXPECT_EQ(results(), results("straight"));
}

TEST_F(RunnerTest, AFailureWhileTrainingIsRecorded) {
  const std::vector<ExperimentRun> runs = grid();
  for (const bool fail_fast : {true, false}) {
    RunnerOptions failing = options();
    failing.fail_fast = fail_fast;
    const fs::path metrics = folder_of(runs[0]) / "metrics.jsonl";
    failing.progress = [&](const GridProgress&) {
      if (!fs::is_regular_file(metrics)) return;
      fs::remove(metrics);
      fs::create_directory(metrics);  // from now on it cannot be written
    };
    const GridSummary summary = run_experiment(runs, failing);
    ASSERT_EQ(summary.failures.size(), 1u);
    EXPECT_THAT(summary.failures[0].message, HasSubstr("metrics.jsonl"));
    EXPECT_EQ(summary.done, fail_fast ? 0 : 7);
    EXPECT_EQ(summary.interrupted, fail_fast ? 7 : 0);
    EXPECT_EQ(result_of(runs[0]).status, RunStatus::failed);
    fs::remove(metrics);
  }
  EXPECT_EQ(run_experiment(runs, options()).done, 1);
}

// Begun on a GPU, and now there is none: what the checkpoint holds cannot be gone on with.
TEST_F(RunnerTest, ARunBegunOnAnotherDeviceStartsAnew) {
  std::vector<ExperimentRun> runs = {grid().front()};
  run_experiment(runs, options());
  const auto expected = results();
  const fs::path manifest = folder_of(runs[0]) / "manifest.json";
  std::string text = text_of(manifest);
  for (const auto& [from, to] : {std::pair{"\"status\": \"done\"", "\"status\": \"running\""},
                                 std::pair{"\"device\": \"cpu\"", "\"device\": \"cuda\""}}) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += 5) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  write_file(manifest, text);
  forget(runs[0]);
  RunnerOptions again = options();
  std::vector<std::string> notices;
  again.notice = [&](const std::string& line) { notices.push_back(line); };
  const GridSummary summary = run_experiment(runs, again);
  EXPECT_EQ(summary.done, 1);
  EXPECT_THAT(notices, testing::ElementsAre(HasSubstr("begun on device cuda")));
  EXPECT_EQ(results(), expected);
}

TEST_F(RunnerTest, OneProcessAtATime) {
  fs::create_directories(options().results);
  const FolderLock other(options().results);
  try {
    run_experiment(grid(), options());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.what(), HasSubstr("in use"));
  }
}

// What is wrong with the database is no failure of a run.
TEST_F(RunnerTest, AResultThatCannotBeRecordedStopsTheGrid) {
  RunnerOptions failing = options();
  bool first = true;
  failing.progress = [&](const GridProgress&) {
    if (!first) return;
    first = false;
    std::ofstream(failing.results / "results.db", std::ios::binary) << std::string(9000, 'x');
  };
  EXPECT_THROW(run_experiment(grid(), failing), Error);
  fs::remove(failing.results / "results.db");
  const GridSummary summary = run_experiment(grid(), options());
  EXPECT_EQ(summary.there + summary.done, 8);
}

TEST_F(RunnerTest, ProgressCountsRunsAndSteps) {
  const std::vector<ExperimentRun> runs = grid();
  run_experiment({runs[0], runs[1]}, options());
  RunnerOptions watched = options();
  std::vector<GridProgress> seen;
  watched.progress = [&](const GridProgress& progress) { seen.push_back(progress); };
  run_experiment(runs, watched);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().runs, 8);
  EXPECT_EQ(seen.front().ended, 2);
  EXPECT_EQ(seen.front().step, 0);
  EXPECT_EQ(seen.front().steps, 6 * 18);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i].step, seen[i - 1].step);
  EXPECT_EQ(seen.back().ended, 8);
  EXPECT_EQ(seen.back().step, seen.back().steps);
  EXPECT_GT(seen.back().steps_per_second, 0);
  EXPECT_EQ(seen.back().seconds_left, 0);
}

TEST_F(RunnerTest, ASurveyChangesNothing) {
  const std::vector<PartSurvey> parts = survey(folder_.path() / "nowhere", grid());
  EXPECT_EQ(whole_of(parts).runs, 8);
  EXPECT_EQ(whole_of(parts).missing(), 8);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[1].task, "cumulative-sum");
  EXPECT_EQ(parts[1].line, "standard");
  EXPECT_EQ(parts[1].found.runs, 2);
  EXPECT_FALSE(fs::exists(folder_.path() / "nowhere"));
}

}  // namespace
}  // namespace posattn

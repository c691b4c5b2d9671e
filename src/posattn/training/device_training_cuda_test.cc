#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/fleet_folders.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DeviceTrainingTest : public testing::Test {
 protected:
  fs::path out(const std::string& name) const { return folder_.path() / name; }
  FleetOptions options(const std::string& name, bool resume = false) const {
    FleetOptions result;
    result.out = out(name);
    result.threads = 2;
    result.resume = resume;
    return result;
  }
  static std::vector<RunConfig> runs(int64_t count, const std::string& device = "cuda") {
    std::vector<RunConfig> configs(count, small_run());
    for (int64_t run = 0; run < count; ++run) {
      configs[run].seed = run;
      configs[run].samples = 24;
      configs[run].batch = 16;
      configs[run].epochs = 4;
      configs[run].device = device;
    }
    return configs;
  }
  void expect_same_run(const fs::path& a, const fs::path& b) const {
    EXPECT_EQ(text_of(a / "model.safetensors"), text_of(b / "model.safetensors"));
    EXPECT_EQ(metrics_of(a), metrics_of(b));
  }
  TemporaryFolder folder_;
};

TEST_F(DeviceTrainingTest, LeavesWhatTheCpuEngineLeaves) {
  const auto on_cpu = train_fleet(runs(2, "cpu"), options("cpu"));
  std::vector<RunProgress> seen;
  FleetOptions with_progress = options("cuda");
  with_progress.progress = [&](const RunProgress& progress) { seen.push_back(progress); };
  const auto on_device = train_fleet(runs(2), with_progress);
  EXPECT_EQ(seen.size(), 2 * 6u);  // the start, four epochs, the end
  for (int run = 0; run < 2; ++run) {
    const RunOutcome &expected = on_cpu[run], &outcome = on_device[run];
    EXPECT_EQ(outcome.status, RunStatus::done);
    EXPECT_EQ(outcome.epoch, 4);
    std::istringstream cpu(text_of(expected.folder / "metrics.jsonl"));
    std::istringstream cuda(text_of(outcome.folder / "metrics.jsonl"));
    for (std::string a, b; std::getline(cpu, a);) {
      ASSERT_TRUE(std::getline(cuda, b));
      const EpochRecord x = epoch_record_from_json(a), y = epoch_record_from_json(b);
      EXPECT_EQ(x.epoch, y.epoch);
      EXPECT_EQ(x.step, y.step);
      EXPECT_NEAR(x.train_loss, y.train_loss, 1e-4 * x.train_loss);
      ASSERT_EQ(x.validation_loss.has_value(), y.validation_loss.has_value());
      EXPECT_NEAR(x.validation_loss.value_or(0), y.validation_loss.value_or(0), 1e-3);
      ASSERT_EQ(x.tests.size(), y.tests.size());
      for (std::size_t row = 0; row < x.tests.size(); ++row) {  // these on the GPU too
        EXPECT_EQ(x.tests[row].metric, y.tests[row].metric);
        EXPECT_EQ(x.tests[row].x, y.tests[row].x);
        EXPECT_NEAR(x.tests[row].value, y.tests[row].value, 1e-3 * (1 + x.tests[row].value));
      }
    }
    std::set<std::string> files;
    for (const auto& entry : fs::directory_iterator(outcome.folder)) {
      files.insert(entry.path().filename());
    }
    EXPECT_EQ(files,
              (std::set<std::string>{"checkpoint.safetensors", "config.toml", "lock",
                                     "manifest.json", "metrics.jsonl", "model.safetensors"}));
    const Manifest manifest = manifest_from_json(text_of(outcome.folder / "manifest.json"), "m");
    EXPECT_EQ(manifest.status, RunStatus::done);
    EXPECT_EQ(manifest.engine.at("device"), "cuda");
    EXPECT_EQ(manifest.engine.at("precision"), "fp32");
    EXPECT_FALSE(manifest.engine.at("engine").empty());
  }
}

TEST_F(DeviceTrainingTest, StartsFromTheWeightsOfAFile) {
  const fs::path file = folder_.path() / "first.safetensors";
  save_model(file, posattn::Run(runs(1, "cpu").front(), 1).model());
  const auto started = [&](const std::string& device) {
    std::vector<RunConfig> configs = runs(2, device);
    for (RunConfig& config : configs) {
      config.from = file.string();
      config.from_noise = 0.1;
      take_start(config, {});
    }
    return train_fleet(configs, options(device));
  };
  const auto on_cpu = started("cpu"), on_device = started("cuda");
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(text_of(on_device[run].folder / "start.safetensors"),
              text_of(on_cpu[run].folder / "start.safetensors"));
    ASSERT_TRUE(on_device[run].last.has_value()) << on_device[run].message;
    const double expected = on_cpu[run].last->train_loss;
    EXPECT_NEAR(on_device[run].last->train_loss, expected, 1e-4 * expected);
  }
  EXPECT_NE(on_device[0].last->train_loss, on_device[1].last->train_loss);
}

TEST_F(DeviceTrainingTest, AnInterruptedFleetResumesToTheSameBits) {
  train_fleet(runs(2), options("straight"));
  std::atomic<bool> stop = false;
  FleetOptions first = options("resumed");
  first.stop = &stop;
  first.progress = [&](const RunProgress& progress) { stop = stop || progress.epoch >= 2; };
  const auto interrupted = train_fleet(runs(2), first);
  for (const RunOutcome& outcome : interrupted) {
    EXPECT_NE(outcome.status, RunStatus::failed) << outcome.message;
    EXPECT_TRUE(fs::exists(outcome.folder / "checkpoint.safetensors"));
  }
  for (const RunOutcome& outcome : train_fleet(runs(2), options("resumed", true))) {
    EXPECT_EQ(outcome.status, RunStatus::done);
    expect_same_run(outcome.folder, out("straight") / outcome.folder.filename());
  }
}

TEST_F(DeviceTrainingTest, AStopBeforeTheStartLeavesNoFolders) {
  const std::atomic<bool> stop = true;
  FleetOptions stopped = options("a");
  stopped.stop = &stop;
  for (const RunOutcome& outcome : train_fleet(runs(2), stopped)) {
    EXPECT_EQ(outcome.status, RunStatus::interrupted);
    EXPECT_FALSE(fs::exists(outcome.folder));
  }
}

TEST_F(DeviceTrainingTest, DivergedAndFailedRunsDoNotDisturbTheOthers) {
  train_fleet(runs(3), options("straight"));
  auto configs = runs(3);
  configs[0].lr = 1e25;
  FleetOptions fleet = options("a");
  const fs::path metrics = out("a") / "positional-seed1" / "metrics.jsonl";
  fleet.progress = [&](const RunProgress& progress) {
    if (progress.run != 1 || progress.epoch != 2 || progress.status != RunStatus::running) return;
    fs::remove(metrics);
    fs::create_directory(metrics);  // from now on it cannot be written
  };
  const auto outcomes = train_fleet(configs, fleet);
  EXPECT_EQ(outcomes[0].status, RunStatus::diverged);
  EXPECT_THAT(outcomes[0].message, HasSubstr("in epoch"));
  EXPECT_FALSE(fs::exists(outcomes[0].folder / "model.safetensors"));
  EXPECT_EQ(outcomes[1].status, RunStatus::failed);
  EXPECT_THAT(outcomes[1].message, HasSubstr("metrics.jsonl"));
  expect_same_run(outcomes[2].folder, out("straight") / "positional-seed2");
  fs::remove(metrics);
  const auto resumed = train_fleet(configs, options("a", true));
  EXPECT_TRUE(resumed[0].already_done);
  EXPECT_EQ(resumed[1].status, RunStatus::done);
  EXPECT_EQ(text_of(resumed[1].folder / "model.safetensors"),
            text_of(out("straight") / "positional-seed1" / "model.safetensors"));
}

TEST_F(DeviceTrainingTest, ArchitecturesAndDevicesGoTogetherInOneList) {
  auto configs = runs(3);
  configs[1].architecture = "standard";
  configs[2].device = "cpu";
  for (const RunOutcome& outcome : train_fleet(configs, options("a"))) {
    EXPECT_EQ(outcome.status, RunStatus::done) << outcome.message;
    const Manifest manifest = manifest_from_json(text_of(outcome.folder / "manifest.json"), "m");
    EXPECT_EQ(manifest.engine.at("device"), outcome.config.device);
  }
}

TEST_F(DeviceTrainingTest, ARunDoesNotDependOnItsWave) {
  train_fleet(runs(3), options("together"));
  FleetOptions little_memory = options("in-turn");
  little_memory.device_memory = DeviceFleet::bytes_needed(runs(2)) / 9 * 10 + 10;
  std::string notice;
  little_memory.notice = [&](const std::string& text) { notice += text; };
  for (const RunOutcome& outcome : train_fleet(runs(3), little_memory)) {
    expect_same_run(outcome.folder, out("together") / outcome.folder.filename());
  }
  EXPECT_THAT(notice, HasSubstr("trained in 2 waves of 2"));
}

TEST_F(DeviceTrainingTest, ARunsTestsDoNotDependOnThoseOfOthers) {
  train_fleet(runs(1), options("alone"));
  std::vector<RunConfig> configs = runs(2);
  configs[1].test_samples = 200;  // so many rows that another kernel multiplies them
  const auto outcomes = train_fleet(configs, options("together"));
  expect_same_run(outcomes[0].folder, out("alone") / outcomes[0].folder.filename());
}

TEST_F(DeviceTrainingTest, ARunDoesNotChangeItsDeviceOrPrecision) {
  train_fleet(runs(1), options("a"));
  for (const auto& [key, value] : {std::pair{"device", "cpu"}, {"precision", "tf32"}}) {
    auto other = runs(1);
    set_field(other[0], key, value);
    try {
      train_fleet(other, options("a", true));
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_THAT(error.problem(), HasSubstr(std::string(key) + " is"));
    }
  }
}

TEST(PlanWaves, RunsThatDoNotFitTogetherTakeTurns) {
  std::vector<RunConfig> configs(7, small_run());
  configs[3].architecture = "standard";
  std::vector<PlannedRun> planned;
  for (const RunConfig& config : configs) planned.push_back({&config});
  std::string notices;
  const auto plan = [&](int64_t bytes) {
    notices.clear();
    return plan_waves(planned, bytes, [&](const std::string& text) { notices += text + "\n"; });
  };
  using Waves = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(plan(int64_t{1} << 40), (Waves{{0, 1, 2, 4, 5, 6}, {3}}));
  EXPECT_EQ(notices, "");
  const int64_t two = DeviceFleet::bytes_needed({configs[0], configs[0]});
  const int64_t standard = DeviceFleet::bytes_needed({configs[3]});
  EXPECT_EQ(plan(std::max(two, standard) * 10 / 9 + 10).front().size(), two > standard ? 2u : 3u);
  EXPECT_THAT(notices, HasSubstr("6 runs need"));
  EXPECT_THAT(notices, HasSubstr("waves of"));
  try {
    plan(1000);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
    EXPECT_THAT(error.problem(), HasSubstr("of GPU memory"));
    EXPECT_THAT(error.hint(), HasSubstr("--device cpu"));
  }
}

// In lockstep the short ones would leave the GPU to the long ones.
TEST(PlanWaves, RunsOfOneLengthComeTogether) {
  std::vector<RunConfig> configs(80, small_run());
  for (std::size_t run = 0; run < configs.size(); ++run) configs[run].epochs = run % 2 == 0 ? 3 : 5;
  configs[7].epochs = 4;  // alone: with the next shorter ones
  std::vector<PlannedRun> planned;
  for (const RunConfig& config : configs) planned.push_back({&config});
  const auto waves = plan_waves(planned, int64_t{1} << 40, {});
  ASSERT_EQ(waves.size(), 2u);
  ASSERT_EQ(waves[0].size(), 39u);
  for (const std::size_t run : waves[0]) EXPECT_EQ(configs[run].epochs, 5);
  EXPECT_EQ(waves[1].front(), 7u);
  EXPECT_EQ(waves[1].size(), 41u);
}

// Where all do not fit, a long run among the last few would train alone for most of its wave.
TEST(PlanWaves, TheLastFewRideAlongOnlyWhereThereIsRoom) {
  std::vector<RunConfig> configs(64, small_run());
  std::vector<PlannedRun> planned;
  for (std::size_t run = 0; run < configs.size(); ++run) {
    configs[run].epochs = run < 33 ? 10 : 1;
    planned.push_back({&configs[run]});
  }
  const int64_t forty = DeviceFleet::bytes_needed({configs.begin(), configs.begin() + 40});
  const auto waves = plan_waves(planned, forty * 10 / 9 + 10, {});
  ASSERT_EQ(waves.size(), 2u);
  EXPECT_EQ(waves[0].size(), 33u);
  EXPECT_EQ(waves[1].size(), 31u);
  EXPECT_EQ(plan_waves(planned, int64_t{1} << 40, {}).size(), 1u);
}

TEST(PlanWaves, WhatIsLeftCountsAndTheLastFewRideAlong) {
  std::vector<RunConfig> configs(70, small_run());
  for (RunConfig& config : configs) config.epochs = 10;
  std::vector<PlannedRun> planned;
  for (std::size_t run = 0; run < configs.size(); ++run) {
    planned.push_back({&configs[run], run < 36 ? 9 : 0});  // nearly done, not begun
  }
  const auto waves = plan_waves(planned, int64_t{1} << 40, {});
  ASSERT_EQ(waves.size(), 2u);
  EXPECT_EQ(waves[0].front(), 36u);
  EXPECT_EQ(waves[0].size(), 34u);
  planned.resize(40);  // four that have not begun, before 36 with little left
  EXPECT_EQ(plan_waves(planned, int64_t{1} << 40, {}).size(), 1u);
  for (std::size_t run = 0; run < 36; ++run) planned[run].epoch = 0;
  for (std::size_t run = 36; run < 40; ++run) planned[run].epoch = 9;  // behind as many as needed
  EXPECT_EQ(plan_waves(planned, int64_t{1} << 40, {}).size(), 1u);
}

}  // namespace
}  // namespace posattn

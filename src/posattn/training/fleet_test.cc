#include "posattn/training/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/model/file/safetensors.h"
#include "posattn/training/recording.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

class FleetTest : public ::testing::Test {
 protected:
  fs::path out(const std::string& name) const { return folder_.path() / name; }
  FleetOptions options(const std::string& name, int threads = 1, bool resume = false) const {
    FleetOptions result;
    result.out = out(name);
    result.threads = threads;
    result.resume = resume;
    return result;
  }
  static std::vector<RunConfig> runs(const std::vector<int64_t>& seeds,
                                     const std::vector<std::string>& architectures = {
                                         "positional"}) {
    std::vector<RunConfig> configs;
    for (const std::string& architecture : architectures) {
      for (const int64_t seed : seeds) {
        configs.push_back(small_run());
        configs.back().architecture = architecture;
        configs.back().seed = seed;
      }
    }
    return configs;
  }
  void expect_same_model(const fs::path& a, const fs::path& b) const {
    EXPECT_EQ(text_of(a / "model.safetensors"), text_of(b / "model.safetensors"));
    EXPECT_EQ(metrics_of(a), metrics_of(b));
  }
  TemporaryFolder folder_;
};

TEST_F(FleetTest, ARunDoesNotDependOnItsFleet) {
  train_fleet(runs({3}), options("alone"));
  const fs::path alone = out("alone") / "positional-seed3";
  for (const int threads : {1, 2, 5}) {
    const std::string name = "fleet" + std::to_string(threads);
    const auto outcomes =
        train_fleet(runs({0, 3, 1}, {"standard", "positional"}), options(name, threads));
    ASSERT_EQ(outcomes.size(), 6u);
    for (const RunOutcome& outcome : outcomes) EXPECT_EQ(outcome.status, RunStatus::done);
    EXPECT_EQ(outcomes[4].folder, out(name) / "positional-seed3");
    expect_same_model(outcomes[4].folder, alone);
  }
}

TEST_F(FleetTest, AFinishedRunHasAllItsFiles) {
  const auto outcomes = train_fleet(runs({2}), options("a"));
  const RunOutcome& outcome = outcomes.front();
  EXPECT_EQ(outcome.epoch, 6);
  ASSERT_TRUE(outcome.last.has_value());
  EXPECT_EQ(tested_values(outcome.last->tests, "c").size(), 2u);
  EXPECT_EQ(metrics_of(outcome.folder).size(), 6u);
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(outcome.folder)) {
    files.insert(entry.path().filename());
  }
  EXPECT_EQ(files, (std::set<std::string>{"checkpoint.safetensors", "config.toml", "lock",
                                          "manifest.json", "metrics.jsonl", "model.safetensors"}));
  const Manifest manifest = manifest_from_json(text_of(outcome.folder / "manifest.json"), "m");
  EXPECT_EQ(manifest.status, RunStatus::done);
  EXPECT_EQ(manifest.epoch, 6);
  EXPECT_EQ(epoch_record_from_json(manifest.final_metrics).train_loss, outcome.last->train_loss);
  const ConfigFile config = read_config_file(outcome.folder / "config.toml");
  EXPECT_EQ(config.config, runs({2}).front());
}

TEST_F(FleetTest, TheFolderNamesTheDeviceThatWasUsed) {
  auto configs = runs({2});
  configs[0].device = "auto";
  const RunOutcome outcome = train_fleet(configs, options("a")).front();
  const ConfigFile config = read_config_file(outcome.folder / "config.toml");
  EXPECT_EQ(config.config.device, device_used(configs[0]));
  EXPECT_TRUE(train_fleet(configs, options("a", 1, true)).front().already_done);
}

TEST_F(FleetTest, ARunStaysOnTheDeviceItWasStartedOn) {
  train_fleet(runs({2}), options("a"));
  auto configs = runs({2});
  configs[0].device = "auto";
  EXPECT_EQ(with_device(configs[0], options("a", 1, true)).device, "cpu");
}

// What a run left before settings named a precision and folders the device that was used.
TEST_F(FleetTest, ARunRecordedWithoutDeviceAndPrecisionResumesOnTheCpu) {
  train_fleet(runs({2}), options("straight"));
  std::atomic<bool> stop = false;
  FleetOptions first = options("a");
  first.stop = &stop;
  first.progress = [&](const RunProgress& progress) { stop = progress.epoch >= 3; };
  const fs::path run = train_fleet(runs({2}), first).front().folder;
  // In place, so that the checkpoint's header keeps its length: spaces are harmless in JSON.
  const auto replace = [&](const char* file, const std::string& from, std::string to) {
    std::string text = text_of(run / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << file << " " << from;
    text.replace(at, from.size(), to.append(from.size() - to.size(), ' '));
    write_file(run / file, text);
  };
  replace("checkpoint.safetensors", R"(\"device\":\"cpu\",\"precision\":\"fp32\")",
          R"(\"device\":\"auto\")");
  replace("checkpoint.safetensors", "posattn.checksum", "another.checksum");
  replace("config.toml", "device = \"cpu\"\nprecision = \"fp32\"", "device = \"auto\"");
  Manifest manifest = manifest_from_json(text_of(run / "manifest.json"), "m");
  auto settings = nlohmann::json::parse(manifest.configuration);
  settings.erase("precision");
  settings["device"] = "auto";
  manifest.configuration = settings.dump();
  write_file(run / "manifest.json", to_json(manifest));

  auto configs = runs({2});
  configs[0].device = "auto";
  const RunOutcome outcome = train_fleet(configs, options("a", 1, true)).front();
  EXPECT_EQ(outcome.status, RunStatus::done) << outcome.message;
  expect_same_model(run, out("straight") / run.filename());
}

TEST_F(FleetTest, AnInterruptedRunResumesToTheSameBits) {
  train_fleet(runs({0, 1}), options("straight"));
  std::atomic<bool> stop = false;
  FleetOptions first = options("resumed");
  first.stop = &stop;
  first.progress = [&](const RunProgress& progress) { stop = progress.epoch >= 3; };
  const auto interrupted = train_fleet(runs({0, 1}), first);
  EXPECT_EQ(interrupted[0].status, RunStatus::interrupted);
  EXPECT_EQ(interrupted[0].epoch, 3);
  EXPECT_EQ(interrupted[1].status, RunStatus::interrupted);
  EXPECT_FALSE(fs::exists(interrupted[0].folder / "model.safetensors"));
  const auto resumed = train_fleet(runs({0, 1}), options("resumed", 2, true));
  for (const RunOutcome& outcome : resumed) {
    EXPECT_EQ(outcome.status, RunStatus::done);
    expect_same_model(outcome.folder, out("straight") / outcome.folder.filename());
  }
}

TEST_F(FleetTest, ARunThatNeverStartedLeavesNoFolder) {
  std::atomic<bool> stop = false;
  FleetOptions one_at_a_time = options("stopped", 1);
  one_at_a_time.stop = &stop;
  one_at_a_time.progress = [&](const RunProgress&) { stop = true; };
  const auto outcomes = train_fleet(runs({0, 1}), one_at_a_time);
  EXPECT_EQ(outcomes[1].status, RunStatus::interrupted);
  EXPECT_TRUE(fs::exists(out("stopped") / "positional-seed0" / "manifest.json"));
  EXPECT_FALSE(fs::exists(out("stopped") / "positional-seed1"));
}

// What kill -9 leaves: a manifest that says "running", metrics beyond the last checkpoint, a torn
// line and a half-written file.
TEST_F(FleetTest, AKilledRunResumesToTheSameBits) {
  train_fleet(runs({0}), options("straight"));
  std::atomic<bool> stop = false;
  FleetOptions first = options("killed");
  first.stop = &stop;
  first.progress = [&](const RunProgress& progress) { stop = progress.epoch >= 2; };
  const fs::path run = train_fleet(runs({0}), first).front().folder;
  Manifest manifest = manifest_from_json(text_of(run / "manifest.json"), "m");
  manifest.status = RunStatus::running;
  write_file(run / "manifest.json", to_json(manifest));
  std::ofstream(run / "metrics.jsonl", std::ios::app) << "{\"epoch\":3,\"step\":9}\n{\"epoch\":4,";
  std::ofstream(run / "checkpoint.safetensors.99-1.partial") << "half";
  const auto outcome = train_fleet(runs({0}), options("killed", 1, true)).front();
  EXPECT_EQ(outcome.status, RunStatus::done);
  expect_same_model(run, out("straight") / "positional-seed0");
  EXPECT_FALSE(fs::exists(run / "checkpoint.safetensors.99-1.partial"));
}

TEST_F(FleetTest, AFinishedRunIsNotTrainedAgain) {
  train_fleet(runs({0}), options("a"));
  const std::string manifest = text_of(out("a") / "positional-seed0" / "manifest.json");
  const auto outcome = train_fleet(runs({0}), options("a", 1, true)).front();
  EXPECT_TRUE(outcome.already_done);
  EXPECT_EQ(outcome.status, RunStatus::done);
  ASSERT_TRUE(outcome.last.has_value());
  EXPECT_EQ(outcome.last->epoch, 6);
  EXPECT_EQ(text_of(outcome.folder / "manifest.json"), manifest);
  fs::remove(outcome.folder / "model.safetensors");
  EXPECT_FALSE(train_fleet(runs({0}), options("a", 1, true)).front().already_done);
  EXPECT_TRUE(fs::exists(outcome.folder / "model.safetensors"));
}

class LostRecordTest : public FleetTest {
 protected:
  // What a power cut left of a finished run: its last checkpoint, but metrics of four epochs only.
  RunOutcome lose_records() const {
    RunOutcome whole = train_fleet(runs({0}), options("a")).front();
    const fs::path metrics = whole.folder / "metrics.jsonl";
    std::istringstream stream(text_of(metrics));
    std::string kept, line;
    for (int epoch = 1; epoch <= 4 && std::getline(stream, line); ++epoch) kept += line + "\n";
    write_file(metrics, kept);
    return whole;
  }
  static void change_manifest(const fs::path& run, const std::function<void(Manifest&)>& change) {
    Manifest manifest = manifest_from_json(text_of(run / "manifest.json"), "m");
    change(manifest);
    write_file(run / "manifest.json", to_json(manifest));
  }
  void expect_measured_again(const RunOutcome& whole) const {
    const std::string model = text_of(whole.folder / "checkpoint.safetensors");
    const RunOutcome outcome = train_fleet(runs({0}), options("a", 1, true)).front();
    EXPECT_EQ(outcome.status, RunStatus::done) << outcome.message;
    ASSERT_TRUE(outcome.last.has_value());
    EXPECT_EQ(outcome.last->epoch, 6);
    EXPECT_EQ(outcome.last->step, whole.last->step);
    EXPECT_EQ(outcome.last->validation_loss, whole.last->validation_loss);
    EXPECT_EQ(outcome.last->tests, whole.last->tests);
    EXPECT_FALSE(outcome.last->tests.empty());
    EXPECT_TRUE(std::isnan(outcome.last->train_loss));
    EXPECT_EQ(metrics_of(outcome.folder).size(), 5u);
    EXPECT_EQ(text_of(outcome.folder / "checkpoint.safetensors"), model);
    EXPECT_TRUE(fs::exists(outcome.folder / "model.safetensors"));
    EXPECT_TRUE(train_fleet(runs({0}), options("a", 1, true)).front().already_done);
  }
};

TEST_F(LostRecordTest, OfTheLastEpochIsMeasuredAgain) {
  const RunOutcome whole = lose_records();
  fs::remove(whole.folder / "model.safetensors");
  change_manifest(whole.folder, [](Manifest& manifest) {
    manifest.status = RunStatus::running;
    manifest.epoch = 0;
    manifest.final_metrics.clear();
  });
  expect_measured_again(whole);
}

// The run as versions before this one recorded it.
TEST_F(LostRecordTest, OfARunCalledDoneIsMeasuredAgain) {
  const RunOutcome whole = lose_records();
  change_manifest(whole.folder, [&](Manifest& manifest) {
    EpochRecord older = *whole.last;
    older.epoch = 4;
    older.tests.clear();
    manifest.final_metrics = to_json(older);
  });
  expect_measured_again(whole);
}

class ExtendedRunTest : public FleetTest {
 protected:
  // Runs whose last epochs fall between validations and tests, so that those at the end are extra.
  static std::vector<RunConfig> runs_of(int64_t epochs, const std::string& schedule = "plateau") {
    auto configs = runs({0, 1}, {"positional", "standard"});
    for (RunConfig& config : configs) {
      config.epochs = epochs;
      config.validate_every = 2;
      config.test_every = 4;
      config.schedule = schedule;
      config.plateau_patience = 0;  // the schedule's state matters at once
    }
    return configs;
  }
  // Everything in a checkpoint but the time it took.
  static std::string checkpoint_without_time(const fs::path& run) {
    const std::vector<std::byte> bytes = read_file(run / "checkpoint.safetensors", 1 << 24);
    const SafetensorsFile file = parse_safetensors(bytes, "checkpoint");
    std::string text;
    for (const auto& [key, value] : file.metadata) {
      if (key != "seconds") text += key + "=" + value + "\n";
    }
    for (const TensorView& tensor : file.tensors) {
      text += tensor.name;
      text.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    }
    return text;
  }
  void expect_refused(const std::vector<RunConfig>& configs, ExitCode code,
                      const std::string& part) const {
    try {
      train_fleet(configs, options("a", 1, true));
      FAIL() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    }
  }
};

TEST_F(ExtendedRunTest, EqualsAnUninterruptedOneToTheBit) {
  for (const char* schedule : {"plateau", "constant"}) {
    const std::string name = schedule;
    const auto straight = train_fleet(runs_of(9, schedule), options(name + "-straight"));
    train_fleet(runs_of(3, schedule), options(name));
    train_fleet(runs_of(5, schedule), options(name, 2, true));
    const auto extended = train_fleet(runs_of(9, schedule), options(name, 2, true));
    for (size_t run = 0; run < straight.size(); ++run) {
      EXPECT_EQ(extended[run].status, RunStatus::done);
      EXPECT_EQ(extended[run].epoch, 9);
      expect_same_model(extended[run].folder, straight[run].folder);
      EXPECT_EQ(checkpoint_without_time(extended[run].folder),
                checkpoint_without_time(straight[run].folder));
      EXPECT_EQ(text_of(extended[run].folder / "config.toml"),
                text_of(straight[run].folder / "config.toml"));
    }
  }
}

TEST_F(ExtendedRunTest, FewerEpochsAndSchedulesThatEndAreRefused) {
  train_fleet(runs_of(3), options("a"));
  expect_refused(runs_of(2), ExitCode::configuration, "a run of 3 epochs, 2 are asked for");
  fs::remove_all(out("a"));
  train_fleet(runs_of(3, "warmup-linear"), options("a"));
  expect_refused(runs_of(4, "warmup-linear"), ExitCode::configuration,
                 "whose schedule warmup-linear ends there");
  EXPECT_TRUE(train_fleet(runs_of(3, "warmup-linear"), options("a", 1, true)).front().already_done);
}

TEST_F(ExtendedRunTest, WithoutItsLastStateARunIsLeftAsItIs) {
  const fs::path folder = train_fleet(runs_of(3), options("a")).front().folder;
  fs::remove(folder / "checkpoint.safetensors");
  const std::string manifest = text_of(folder / "manifest.json");
  const RunOutcome outcome = train_fleet(runs_of(4), options("a", 1, true)).front();
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.failure, ExitCode::data);
  EXPECT_THAT(outcome.message, ::testing::HasSubstr("cannot go on from epoch 3"));
  EXPECT_EQ(text_of(folder / "manifest.json"), manifest);
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
}

TEST_F(FleetTest, RefusalsComeBeforeAnythingIsTrained) {
  train_fleet(runs({1}), options("a"));
  EXPECT_THROW(train_fleet(runs({0, 1}), options("a")), Error);
  EXPECT_FALSE(fs::exists(out("a") / "positional-seed0"));
  EXPECT_TRUE(fs::exists(out("a") / "positional-seed1" / "model.safetensors"));
  auto other = runs({1});
  other[0].lr = 0.25;
  EXPECT_THROW(train_fleet(other, options("a", 1, true)), Error);
  EXPECT_THROW(train_fleet(runs({2, 2}), options("b")), Error);
  auto bad = runs({0, 1});
  bad[1].batch = 0;
  EXPECT_THROW(train_fleet(bad, options("c")), Error);
  EXPECT_FALSE(fs::exists(out("c")));
}

TEST_F(FleetTest, MoreRunsThanFilesMayBeOpenAreRefused) {
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  const rlimit limit{64, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<int64_t> seeds(100);
  std::iota(seeds.begin(), seeds.end(), 0);
  try {
    train_fleet(runs(seeds), options("a"));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.problem(), ::testing::HasSubstr("100 runs at once"));
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("ulimit -n"));
  }
  setrlimit(RLIMIT_NOFILE, &old_limit);
  EXPECT_FALSE(fs::exists(out("a")));
}

TEST_F(FleetTest, ADivergedRunIsRecordedAndTheOthersGoOn) {
  auto configs = runs({0, 1});
  configs[0].lr = 1e25;
  const auto outcomes = train_fleet(configs, options("a"));
  EXPECT_EQ(outcomes[0].status, RunStatus::diverged);
  EXPECT_THAT(outcomes[0].message, ::testing::HasSubstr("in epoch"));
  EXPECT_EQ(outcomes[1].status, RunStatus::done);
  EXPECT_TRUE(fs::exists(outcomes[0].folder / "checkpoint.safetensors"));
  EXPECT_FALSE(fs::exists(outcomes[0].folder / "model.safetensors"));
  const Manifest manifest = manifest_from_json(text_of(outcomes[0].folder / "manifest.json"), "m");
  EXPECT_EQ(manifest.status, RunStatus::diverged);
  const auto again = train_fleet(configs, options("a", 1, true));
  EXPECT_EQ(again[0].status, RunStatus::diverged);
  EXPECT_TRUE(again[0].already_done);
}

TEST_F(FleetTest, AFailedRunIsRecordedAndTheOthersGoOn) {
  FleetOptions fleet = options("a");
  const fs::path metrics = out("a") / "positional-seed0" / "metrics.jsonl";
  fleet.progress = [&](const RunProgress& progress) {
    if (progress.run == 0 && progress.epoch == 2 && progress.status == RunStatus::running) {
      fs::remove(metrics);
      fs::create_directory(metrics);  // from now on it cannot be written
    }
  };
  const auto outcomes = train_fleet(runs({0, 1}), fleet);
  EXPECT_EQ(outcomes[0].status, RunStatus::failed);
  EXPECT_THAT(outcomes[0].message, ::testing::HasSubstr("metrics.jsonl"));
  EXPECT_EQ(outcomes[1].status, RunStatus::done);
  // There is no checkpoint of an epoch whose record may be lost.
  EXPECT_EQ(load_checkpoint(outcomes[0].folder / "checkpoint.safetensors", runs({0})[0]).epoch, 1);
  fs::remove(metrics);
  const auto resumed = train_fleet(runs({0, 1}), options("a", 1, true));
  EXPECT_EQ(resumed[0].status, RunStatus::done);
  train_fleet(runs({0}), options("straight"));
  EXPECT_EQ(text_of(resumed[0].folder / "model.safetensors"),
            text_of(out("straight") / "positional-seed0" / "model.safetensors"));
}

TEST_F(FleetTest, ProgressCountsUpToTheEnd) {
  FleetOptions fleet = options("a");
  std::vector<RunProgress> seen;
  fleet.progress = [&](const RunProgress& progress) { seen.push_back(progress); };
  train_fleet(runs({5}), fleet);
  ASSERT_EQ(seen.size(), 8u);  // the start, six epochs, the end
  EXPECT_EQ(seen.front().epoch, 0);
  EXPECT_EQ(seen.front().steps, 18);
  EXPECT_EQ(seen.front().seed, 5);
  EXPECT_EQ(seen[3].epoch, 3);
  EXPECT_EQ(seen[3].status, RunStatus::running);
  EXPECT_GT(seen[3].steps_per_second, 0);
  EXPECT_EQ(seen.back().status, RunStatus::done);
  EXPECT_EQ(seen.back().seconds_left, 0);
  EXPECT_TRUE(seen.back().validation_loss.has_value());
}

TEST_F(FleetTest, ProgressTellsOfRunsThatAreNotTrained) {
  const auto first = train_fleet(runs({0, 1}), options("a"));
  fs::remove(first[1].folder / "model.safetensors");
  write_file(first[1].folder / "checkpoint.safetensors", "damaged");
  FleetOptions again = options("a", 1, true);
  std::vector<RunProgress> seen;
  again.progress = [&](const RunProgress& progress) { seen.push_back(progress); };
  const auto outcomes = train_fleet(runs({0, 1}), again);
  EXPECT_EQ(outcomes[1].status, RunStatus::failed);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].status, RunStatus::done);
  EXPECT_EQ(seen[0].step, 18);
  EXPECT_EQ(seen[0].steps, 18);
  EXPECT_EQ(seen[0].steps_per_second, 0);
  EXPECT_EQ(seen[0].train_loss, first[0].last->train_loss);
  EXPECT_EQ(seen[1].run, 1u);
  EXPECT_EQ(seen[1].status, RunStatus::failed);
  EXPECT_EQ(seen[1].step, 0);
  EXPECT_EQ(seen[1].steps, 18);
}

}  // namespace
}  // namespace posattn

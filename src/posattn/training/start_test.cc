#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/model/file/model_file.h"
#include "posattn/training/fleet.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"
#include "posattn/training/run_files_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StartTest : public ::testing::Test {
 protected:
  StartTest() : trained_(initial_model(7)) { save_model(file(), trained_); }

  static Model initial_model(int64_t seed) {
    RunConfig config = small_run();
    config.seed = seed;
    return posattn::Run(config, 1).model();
  }
  std::string file() const { return (folder_.path() / "first.safetensors").string(); }

  // A run that says nothing of its model.
  RunConfig from_file(double noise = 0, int64_t seed = 0) const {
    RunConfig config = small_run();
    config.seed = seed;
    config.width = config.mlp_width = 64;
    config.from = file();
    config.from_noise = noise;
    take_start(config, {});
    return config;
  }
  std::vector<float> first_weights(const RunConfig& config) const {
    const Parameters<float> parameters = start_parameters(config);
    return {parameters.values().begin(), parameters.values().end()};
  }
  FleetOptions options(const std::string& name, bool resume = false) const {
    FleetOptions result;
    result.out = folder_.path() / name;
    result.resume = resume;
    return result;
  }
  static void expect_refused(const RunConfig& config, ExitCode code, const std::string& part) {
    try {
      start_parameters(config);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  TemporaryFolder folder_;
  Model trained_;
};

TEST_F(StartTest, TheFileSaysWhatTheModelIs) {
  const RunConfig config = from_file();
  EXPECT_EQ(model_spec(config), trained_.spec);
  EXPECT_EQ(config.width, 8);
  EXPECT_EQ(config.from_hash.size(), 16u);
  EXPECT_NO_THROW(validate(config));
  EXPECT_EQ(posattn::Run(config, 1).model().origin.notes.at("from"), config.from_hash);
}

TEST_F(StartTest, ADefaultThatMeansTheSameStays) {
  RunConfig usual = small_run();
  usual.depth = 0;
  save_model(file(), posattn::Run(usual, 1).model());
  RunConfig config = small_run();
  config.depth = 0;
  config.from = file();
  take_start(config, {});
  EXPECT_EQ(config.depth, 0);
  EXPECT_EQ(config.encoding, Encoding::automatic);
  EXPECT_EQ(config.encoding_size, 0);
}

TEST_F(StartTest, TrainingStartsWithTheFilesWeights) {
  const posattn::Run run(from_file(), 1);
  EXPECT_TRUE(std::ranges::equal(run.state().parameters.values(), trained_.parameters.values()));
}

TEST_F(StartTest, NoiseIsAShareOfEachTensorAndDependsOnTheWeightSeedAlone) {
  const std::vector<float> noisy = first_weights(from_file(0.01, 3));
  EXPECT_EQ(first_weights(from_file(0.01, 3)), noisy);
  EXPECT_NE(first_weights(from_file(0.01, 4)), noisy);
  RunConfig other_data = from_file(0.01, 3);
  other_data.data_seed = 8;
  EXPECT_EQ(first_weights(other_data), noisy);
  const auto rms = [](auto begin, auto end) {
    double sum = 0;
    for (auto i = begin; i != end; ++i) sum += double{*i} * *i;
    return std::sqrt(sum / static_cast<double>(end - begin));
  };
  for (const TensorInfo& tensor : trained_.parameters.layout().tensors()) {
    const std::span<const float> before = trained_.parameters.slice(tensor);
    std::vector<float> change(before.size());
    for (size_t i = 0; i < before.size(); ++i) change[i] = noisy[tensor.offset + i] - before[i];
    const double scale = rms(before.begin(), before.end());
    const double moved = rms(change.begin(), change.end());
    // The mean square of k normal numbers is within 5 sqrt(2 / k) of 1.
    EXPECT_NEAR(moved * moved, 1e-4 * scale * scale,
                1e-4 * scale * scale * 5 * std::sqrt(2.0 / static_cast<double>(before.size())))
        << tensor.name;
  }
}

TEST_F(StartTest, SettingsThatContradictTheFileAreNamed) {
  RunConfig config = small_run();
  config.from = file();
  config.mlp_width = 16;
  try {
    take_start(config, {"mlp-width"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.what(), HasSubstr("mlp-width is 8 there, 16 here"));
  }
  RunConfig standard = from_file();
  standard.architecture = "standard";
  expect_refused(standard, ExitCode::configuration, "attention is \"positions\" there");
}

TEST_F(StartTest, AnotherFileIsRefused) {
  const RunConfig config = from_file();
  save_model(file(), initial_model(8));
  expect_refused(config, ExitCode::configuration, "from-hash = " + config.from_hash);
  fs::remove(file());
  expect_refused(config, ExitCode::data, "first.safetensors");
  RunConfig gone = config;
  EXPECT_NO_THROW(take_start(gone, {}));  // a checkpoint may do without it
  EXPECT_EQ(gone, config);
  gone.from_hash.clear();
  EXPECT_THROW(take_start(gone, {}), Error);
}

TEST_F(StartTest, RoutesCannotBeTrained) {
  Model routed = trained_;
  routed.spec.scores = Scores::routes;
  routed.parameters = Parameters<float>(routed.spec);
  RunConfig config = from_file();
  save_model(file(), routed);
  config.from_hash.clear();
  expect_refused(config, ExitCode::configuration, "compile PROGRAM --dense --sharpness 15");
}

TEST_F(StartTest, SettingsOfAStartThatIsNoneAreRefused) {
  const auto refused = [](auto change) {
    RunConfig config = small_run();
    change(config);
    EXPECT_THROW(validate(config), Error);
  };
  refused([](RunConfig& c) { c.from_noise = 0.1; });
  refused([](RunConfig& c) { c.from_hash = "0123456789abcdef"; });
  refused([](RunConfig& c) { c.from = "x.safetensors"; });
  refused([](RunConfig& c) { c.from = "x.safetensors", c.from_hash = "0123456789ABCDEF"; });
}

TEST_F(StartTest, AFleetGoesOnWithoutTheFile) {
  const std::vector<RunConfig> configs = {from_file(0.1, 0), from_file(0.1, 1)};
  train_fleet(configs, options("straight"));
  std::atomic<bool> stop = false;
  FleetOptions first = options("resumed");
  first.stop = &stop;
  first.threads = 2;
  first.progress = [&](const RunProgress& progress) { stop = progress.epoch >= 3; };
  train_fleet(configs, first);
  fs::rename(file(), file() + ".moved");
  EXPECT_THROW(train_fleet(configs, options("new")), Error);
  EXPECT_FALSE(fs::exists(folder_.path() / "new" / "positional-seed0"));
  for (const RunOutcome& outcome : train_fleet(configs, options("resumed", true))) {
    EXPECT_EQ(outcome.status, RunStatus::done) << outcome.message;
    const fs::path straight = folder_.path() / "straight" / outcome.folder.filename();
    EXPECT_EQ(metrics_of(outcome.folder), metrics_of(straight));
    for (const char* name : {"model.safetensors", "start.safetensors"}) {
      EXPECT_EQ(text_of(outcome.folder / name), text_of(straight / name)) << name;
    }
  }
}

}  // namespace
}  // namespace posattn

#include "posattn/bounds/experiment_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/training/run.h"

namespace posattn::bounds {
namespace {

constexpr const char* two_points = R"(
title = "Bounds"
tasks = ["sort"]
seeds = "0..1"
[axis]
key = "samples"
values = [40, 60]
label = "samples"
[settings]
length = 3
width = 4
mlp-width = 4
depth = 1
batch = 20
epochs = 1
[[lines]]
name = "positional"
architecture = "positional"
)";

TEST(ExperimentBounds, OfTheRunsThatHaveWeights) {
  const TemporaryFolder folder;
  const Experiment experiment = read_experiment(two_points, "mine", "mine.toml");
  EXPECT_THROW(experiment_bounds(experiment, folder.path(), {.name = ""}), Error);
  const std::vector<ExperimentRun> runs = runs_of(experiment);
  ASSERT_EQ(runs.size(), 4u);
  for (size_t r = 0; r < 3; ++r) {
    const std::filesystem::path at = folder.path() / "runs" / runs[r].key;
    std::filesystem::create_directories(at);
    save_model(at / "model.safetensors",
               trained_model(runs[r].config, initial_state(runs[r].config)));
  }
  const ExperimentBounds found =
      experiment_bounds(experiment, folder.path(), {.name = "", .fresh_samples = 10});
  EXPECT_EQ(found.runs.size(), 3u);
  EXPECT_EQ(found.missing, 1);
  EXPECT_EQ(found.runs[2].report.setting.samples, 60);
  EXPECT_EQ(found.runs[2].report.measured->training.samples, 60);
  const std::string csv = to_csv(found);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 4);
  EXPECT_THAT(csv, ::testing::HasSubstr("\nsort,positional,0,60,60,"));
}

TEST(ExperimentBounds, NotAlongAnAxisOfTests) {
  try {
    experiment_bounds(load_experiment("value-range"), "results", {.name = ""});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.problem(), ::testing::HasSubstr("value-range tests each run along c"));
  }
}

}  // namespace
}  // namespace posattn::bounds

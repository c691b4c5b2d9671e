#include <gtest/gtest.h>

#include <limits>

#include "posattn/experiments/recorded_runs.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

RunResult result_of(const EpochRecord& last) {
  Manifest manifest;
  manifest.configuration = to_json(RunConfig());
  manifest.status = RunStatus::done;
  manifest.epoch = last.epoch;
  manifest.final_metrics = to_json(last);
  return result_of_manifest(to_json(manifest), "run", "key");
}

TEST(FinishedRun, ALossThatWasLostIsNoMeasurement) {
  EpochRecord last;
  last.epoch = 6;
  last.validation_loss = 0.5;
  last.train_loss = 0.25;
  const MeasuredPlace train = {.split = Split::train, .metric = "mse"};
  const MeasuredPlace validation = {.split = Split::validation, .metric = "mse"};
  EXPECT_EQ(find_value(result_of(last).measurements, train), 0.25);
  last.train_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(find_value(result_of(last).measurements, train).has_value());
  EXPECT_EQ(find_value(result_of(last).measurements, validation), 0.5);
}

}  // namespace
}  // namespace posattn

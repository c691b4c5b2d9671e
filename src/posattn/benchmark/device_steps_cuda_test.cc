#include <gtest/gtest.h>

#include "posattn/benchmark/steps.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

TEST(DeviceSteps, TimesAFleet) {
  RunConfig config = small_run();
  config.batch = 16;
  config.path = "plain";
  config.device = "cuda";
  const DeviceTiming timing = time_device_steps(config, 2, 0);
  EXPECT_EQ(timing.engine, "general");
  EXPECT_EQ(timing.seeds, 2);
  EXPECT_GE(timing.step.repetitions, 5);
  EXPECT_GT(timing.microseconds_per_seed(), 0);
  EXPECT_LE(timing.step.lower_quartile, timing.step.median);
  EXPECT_GT(timing.gflops(), 0);
}

}  // namespace
}  // namespace posattn

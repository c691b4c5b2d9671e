#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "posattn/experiments/runner.h"

namespace posattn {
namespace {

RunConfig of_length(int64_t length) {
  RunConfig config;
  config.length = length;
  config.samples = config.batch = 100;
  config.epochs = 10;  // a step each
  return config;
}

RunProgress ended() {
  RunProgress progress;
  progress.status = RunStatus::done;
  progress.step = progress.steps = 10;
  return progress;
}

TEST(GridSteps, CountWhatStepsCost) {
  GridSteps grid({of_length(2), of_length(32)});
  grid.update(0, {});  // begins
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  grid.update(0, ended());
  const GridProgress half = grid.progress();
  EXPECT_EQ(half.step, 10);
  EXPECT_EQ(half.steps, 20);
  EXPECT_GT(half.fraction, 0);
  EXPECT_LT(half.fraction, 0.1);  // n = 32 has 11 times the nodes, and larger maps
  EXPECT_GT(half.seconds_left, 10 * 0.02);
  grid.update(1, ended());
  EXPECT_DOUBLE_EQ(grid.progress().fraction, 1);
  EXPECT_NEAR(grid.progress().seconds_left, 0, 1e-9);
}

}  // namespace
}  // namespace posattn

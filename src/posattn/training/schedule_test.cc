#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/training/optimiser.h"

namespace posattn {
namespace {

TEST(Schedule, PlateauLowersTheRateOnTheFirstEpochBeyondPatience) {
  const ScheduleOptions options;
  ScheduleState state = initial_schedule(options);
  after_epoch(options, 1.0, state);
  for (int epoch = 0; epoch < 50; ++epoch) after_epoch(options, 1.0, state);
  EXPECT_EQ(learning_rate(options, state, 0), 5e-4);
  after_epoch(options, 1.0, state);  // the 51st in a row
  EXPECT_DOUBLE_EQ(learning_rate(options, state, 0), 4.5e-4);
  EXPECT_EQ(state.bad_epochs, 0);
  for (int epoch = 0; epoch < 50; ++epoch) after_epoch(options, 1.0, state);
  EXPECT_DOUBLE_EQ(learning_rate(options, state, 0), 4.5e-4);
  after_epoch(options, 1.0, state);
  EXPECT_DOUBLE_EQ(learning_rate(options, state, 0), 4.05e-4);
}

TEST(Schedule, PlateauCountsOnlyARelativeGainAsBetter) {
  ScheduleOptions options;
  options.patience = 1;
  ScheduleState state = initial_schedule(options);
  after_epoch(options, 1.0, state);
  after_epoch(options, 0.99995, state);  // less than 1e-4 of the best
  EXPECT_EQ(state.bad_epochs, 1);
  EXPECT_EQ(state.best, 1.0);
  after_epoch(options, 0.9998, state);
  EXPECT_EQ(state.bad_epochs, 0);
  EXPECT_EQ(state.best, 0.9998);
}

TEST(Schedule, PlateauStopsAtTheFloorAndSkipsTinyChanges) {
  ScheduleOptions options;
  options.patience = 0;
  options.lr = 1.05e-6;
  ScheduleState state = initial_schedule(options);
  after_epoch(options, 1.0, state);
  after_epoch(options, 1.0, state);
  EXPECT_EQ(state.rate, 1e-6);
  options.floor = 0;
  options.lr = 5e-8;  // 10 % of it is less than epsilon
  state = initial_schedule(options);
  after_epoch(options, 1.0, state);
  after_epoch(options, 1.0, state);
  EXPECT_EQ(state.rate, 5e-8);
}

TEST(Schedule, PlateauTakesANonFiniteLossForNoGain) {
  const ScheduleOptions options;
  ScheduleState state = initial_schedule(options);
  after_epoch(options, std::nan(""), state);
  EXPECT_EQ(state.bad_epochs, 1);
}

TEST(Schedule, WarmupIsLinearUpAndLinearDown) {
  ScheduleOptions options;
  options.kind = ScheduleKind::warmup_linear;
  options.lr = 1;
  options.warmup_steps = 4;
  options.total_steps = 14;
  ScheduleState state = initial_schedule(options);
  EXPECT_EQ(learning_rate(options, state, 0), 0);
  EXPECT_EQ(learning_rate(options, state, 1), 0.25);
  EXPECT_EQ(learning_rate(options, state, 4), 1);
  EXPECT_EQ(learning_rate(options, state, 9), 0.5);
  EXPECT_EQ(learning_rate(options, state, 14), 0);
  after_epoch(options, 1, state);
  EXPECT_EQ(state, initial_schedule(options));
}

TEST(Schedule, ConstantStays) {
  ScheduleOptions options;
  options.kind = ScheduleKind::constant;
  ScheduleState state = initial_schedule(options);
  for (int epoch = 0; epoch < 200; ++epoch) after_epoch(options, 1, state);
  EXPECT_EQ(learning_rate(options, state, 12345), 5e-4);
}

TEST(Schedule, NamesAreKnown) {
  EXPECT_EQ(schedule_kind_from("warmup-linear"), ScheduleKind::warmup_linear);
  EXPECT_THROW(schedule_kind_from("cosine"), Error);
}

}  // namespace
}  // namespace posattn

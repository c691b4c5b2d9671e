#include <gtest/gtest.h>

#include <limits>

#include "posattn/report/experiment/results.h"

namespace posattn {
namespace {

TEST(WallClockSeconds, RunsOfAFleetCountOnce) {
  EXPECT_EQ(wall_clock_seconds({}), 0);
  EXPECT_EQ(wall_clock_seconds({{"2026-01-01T00:10:00Z", 100}, {"2026-01-01T00:10:00Z", 100}}),
            100);
  // The second begins within the first, the third lies in both.
  EXPECT_EQ(wall_clock_seconds({{"2026-01-01T00:10:00Z", 100},
                                {"2026-01-01T00:11:00Z", 90},
                                {"2026-01-01T00:09:50Z", 20}}),
            160);
}

TEST(WallClockSeconds, WhatLiesBetweenRunsDoesNotCount) {
  // Over midnight, a year's end and a leap day; in any order.
  EXPECT_EQ(wall_clock_seconds({{"2024-03-01T00:00:30Z", 60.5},
                                {"2024-02-29T23:59:00Z", 10},
                                {"2024-01-01T00:00:01Z", 2},
                                {"2023-12-31T23:59:59Z", 1}}),
            60.5 + 10 + 2 + 1);
}

TEST(WallClockSeconds, WithoutATimeARunCountsByItself) {
  EXPECT_EQ(wall_clock_seconds({{"", 10}, {"", 10}, {"2026-01-01T00:10:00Z and more", 10}}), 30);
  EXPECT_EQ(
      wall_clock_seconds({{"2026-01-01T00:10:00Z", 0},
                          {"2026-01-01T00:10:00Z", std::numeric_limits<double>::quiet_NaN()}}),
      0);
}

}  // namespace
}  // namespace posattn

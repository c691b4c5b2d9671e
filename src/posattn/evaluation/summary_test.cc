#include "posattn/evaluation/summary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/limits.h"

namespace posattn {
namespace {

Spread spread(std::vector<double> values) { return spread_of(values); }

TEST(Summary, OneValueIsEveryStatistic) {
  const Spread one = spread({3.5});
  EXPECT_EQ(one.count, 1);
  for (const double value :
       {one.minimum, one.lower_quartile, one.median, one.upper_quartile, one.maximum, one.mean}) {
    EXPECT_EQ(value, 3.5);
  }
}

TEST(Summary, QuartilesInterpolateBetweenNeighbours) {
  const Spread four = spread({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(four.minimum, 1);
  EXPECT_DOUBLE_EQ(four.lower_quartile, 1.75);
  EXPECT_DOUBLE_EQ(four.median, 2.5);
  EXPECT_DOUBLE_EQ(four.upper_quartile, 3.25);
  EXPECT_DOUBLE_EQ(four.maximum, 4);
  EXPECT_DOUBLE_EQ(four.mean, 2.5);
  const Spread five = spread({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(five.lower_quartile, 20);
  EXPECT_DOUBLE_EQ(five.median, 30);
  EXPECT_DOUBLE_EQ(five.upper_quartile, 40);
}

TEST(Summary, NaNIsNeverLeftOutSilently) {
  const Spread some = spread({1, std::nan(""), 2});
  EXPECT_EQ(some.count, 3);
  EXPECT_EQ(some.non_finite, 1);
  EXPECT_TRUE(std::isnan(some.median));
  EXPECT_TRUE(std::isnan(some.minimum));
  EXPECT_TRUE(std::isnan(some.mean));
}

TEST(Summary, InfinitiesAreOrdered) {
  const Spread three = spread({infinity, 1, 2});
  EXPECT_EQ(three.non_finite, 1);
  EXPECT_EQ(three.minimum, 1);
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.upper_quartile, infinity);
  EXPECT_EQ(three.mean, infinity);
  EXPECT_EQ(spread({infinity, infinity}).median, infinity);
}

TEST(Summary, NothingHasNoStatistics) {
  const Spread none = spread({});
  EXPECT_EQ(none.count, 0);
  EXPECT_TRUE(std::isnan(none.median));
}

TEST(Summary, OneOverTheRunsThatHaveThePlace) {
  const auto run = [](double mse) -> std::vector<Measurement> {
    return {{Split::test, "c", 2, "mse", mse}, {Split::test, "c", 2, "accuracy", 0.5}};
  };
  const std::vector<Measurement> first = run(40), second = run(20), third = run(60), untested;
  const std::vector<const std::vector<Measurement>*> runs = {&first, &second, &third, &untested};
  const Spread mse = spread_at(runs, {.axis = "c", .x = 2, .metric = "mse"});
  EXPECT_EQ(mse.count, 3);
  EXPECT_EQ(mse.median, 40);
  EXPECT_EQ(spread_at(runs, {.axis = "c", .x = 2, .metric = "mse_over_c2"}).median, 10);
  EXPECT_EQ(spread_at(runs, {.axis = "c", .x = 2, .metric = "accuracy"}).maximum, 0.5);
  EXPECT_EQ(spread_at(runs, {.axis = "c", .x = 3, .metric = "mse"}).count, 0);
}

}  // namespace
}  // namespace posattn

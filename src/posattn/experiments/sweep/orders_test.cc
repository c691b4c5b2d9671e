#include "posattn/experiments/sweep/orders.h"

#include <gtest/gtest.h>

#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

using Orders = std::vector<std::vector<std::size_t>>;

// Of two shapes; runs of a shape differ in length.
std::vector<RunConfig> runs_of_two_shapes() {
  std::vector<RunConfig> configs;
  for (const int64_t epochs : {1, 9, 2, 3}) {
    for (const int64_t width : {8, 16}) {
      configs.push_back(small_run());
      configs.back().epochs = epochs;
      configs.back().width = width;
    }
  }
  return configs;
}

TEST(OrdersTest, TheCostliestComeFirst) {
  EXPECT_EQ(plan_orders(runs_of_two_shapes(), 8, 4),
            (Orders{{3}, {2}, {7}, {5}, {6}, {1}, {4}, {0}}));
  EXPECT_TRUE(plan_orders({}, 8, 4).empty());
}

TEST(OrdersTest, AnOrderHasOneShape) {
  EXPECT_EQ(plan_orders(runs_of_two_shapes(), 1, 100), (Orders{{3, 7, 5, 1}, {2, 6, 4, 0}}));
}

TEST(OrdersTest, AnOrderIsNoLargerThanARankCanTakeOrItsPart) {
  EXPECT_EQ(plan_orders(runs_of_two_shapes(), 1, 2), (Orders{{3, 7}, {2, 6}, {5, 1}, {4, 0}}));
  EXPECT_EQ(plan_orders(runs_of_two_shapes(), 4, 100), (Orders{{3, 7}, {2, 6}, {5, 1}, {4, 0}}));
}

}  // namespace
}  // namespace posattn

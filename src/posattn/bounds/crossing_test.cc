#include "posattn/bounds/crossing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"

namespace posattn::bounds {
namespace {

CrossingRequest small_crossing() {
  return {.hops = {1, 16}, .positional_depths = {1, 6, 9}, .length = 4, .width = 8};
}

TEST(Crossing, DepthsOfStandardTransformers) {
  EXPECT_EQ(standard_depth_for(1), 2);
  EXPECT_EQ(standard_depth_for(2), 3);
  EXPECT_EQ(standard_depth_for(3), 3);
  EXPECT_EQ(standard_depth_for(4), 4);
  EXPECT_EQ(standard_depth_for(16), 6);
}

TEST(Crossing, LiesWhereTheCurvesMeet) {
  const Crossing found = find_crossing(small_crossing());
  ASSERT_EQ(found.positional.size(), 3u);
  ASSERT_EQ(found.standard.size(), 2u);
  ASSERT_EQ(found.points.size(), 6u);
  for (const StandardCurve& curve : found.standard) {
    EXPECT_TRUE(std::ranges::is_sorted(curve.log_norms));
    for (size_t k = 1; k < curve.log_bounds.size(); ++k) {
      EXPECT_GE(curve.log_bounds[k], curve.log_bounds[k - 1] - 1e-3);
    }
  }
  // One layer with free attention has a smaller bound than two or six from data at any norm.
  EXPECT_FALSE(found.points[0].log_norm && found.points[3].log_norm);
  for (const CrossingPoint& point : found.points) {
    if (!point.log_norm) continue;
    const StandardCurve& curve = found.standard[point.hops == 1 ? 0 : 1];
    const double level =
        found.positional[point.positional_depth == 1   ? 0
                         : point.positional_depth == 6 ? 1
                                                       : 2]
            .log_bound;
    for (size_t k = 0; k < curve.log_norms.size(); ++k) {
      if (curve.log_norms[k] < *point.log_norm - 0.1) {
        EXPECT_LE(curve.log_bounds[k], level + 0.05);
      }
      if (curve.log_norms[k] > *point.log_norm + 0.1) {
        EXPECT_GE(curve.log_bounds[k], level - 0.05);
      }
    }
  }
  // More positional layers allow larger norms; more standard ones smaller.
  EXPECT_GT(*found.points[2].log_norm, *found.points[1].log_norm);
  EXPECT_LT(*found.points[5].log_norm, *found.points[2].log_norm);
}

TEST(Crossing, Refusals) {
  CrossingRequest request = small_crossing();
  request.hops = {0};
  EXPECT_THROW(find_crossing(request), Error);
  request = small_crossing();
  request.positional_depths = {65};
  EXPECT_THROW(find_crossing(request), Error);
  request = small_crossing();
  request.setting.samples = 0;
  EXPECT_THROW(find_crossing(request), Error);
}

}  // namespace
}  // namespace posattn::bounds

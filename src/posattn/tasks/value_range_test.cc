// The distribution of input values: the range of (a, b), the rejection rule, uniformity, integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr uint32_t draws = 4000;

std::vector<float> draw(const ValueRange& range, uint32_t sample, int64_t count) {
  RandomStream random(11, Purpose::test_data, 0, sample);
  std::vector<float> values(count);
  draw_values(random, range, values);
  return values;
}

// Kolmogorov and Smirnov's distance to the uniform distribution on [0, 1].
double distance_to_uniform(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double rank = static_cast<double>(i);
    distance = std::max({distance, values[i] - rank / n, (rank + 1) / n - values[i]});
  }
  return distance;
}

TEST(ValueRange, TrainingValuesFollowTheRule) {
  // With the random words known, a sample's (a, b) and its values follow by hand.
  std::vector<double> minima;
  std::vector<double> positions;
  for (uint32_t sample = 0; sample < draws; ++sample) {
    RandomStream words(11, Purpose::test_data, 0, sample);
    const double u = words.uniform();
    const double v = words.uniform();
    const double a = -2 + 4 * std::min(u, v);
    const double b = -2 + 4 * std::max(u, v);
    for (const double x : draw(training_range(2, false), sample, 3)) {
      EXPECT_GE(x, a - 1e-6);
      EXPECT_LE(x, b + 1e-6);
      positions.push_back((x - a) / (b - a));
    }
    minima.push_back(1 - std::pow(1 - (a + 2) / 4, 2));  // distribution function of a minimum of 2
  }
  EXPECT_LT(distance_to_uniform(minima), 1.63 / std::sqrt(draws));  // 1 % level
  EXPECT_LT(distance_to_uniform(positions), 1.63 / std::sqrt(3.0 * draws));
}

TEST(ValueRange, TestRangesNeverLieInsideTheTrainingRange) {
  for (const double scale : {1.5, 2.0, 10.0}) {
    const ValueRange range = test_range(2, scale, false);
    int straddle = 0;
    int outside = 0;
    int values_inside = 0;
    double lowest = 0;
    double highest = 0;
    for (uint32_t sample = 0; sample < draws; ++sample) {
      const std::vector<float> x = draw(range, sample, 400);
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      // 400 uniform values all but reach a and b.
      const double reach = 0.03 * (*high - *low);
      EXPECT_FALSE(*low - reach > -2 && *high + reach < 2) << *low << ' ' << *high;
      straddle += (*low < -2 && *high > -2) || (*low < 2 && *high > 2);
      outside += *low > 2 || *high < -2;
      values_inside += std::count_if(x.begin(), x.end(), [](float v) { return std::abs(v) < 2; });
      lowest = std::min<double>(lowest, *low);
      highest = std::max<double>(highest, *high);
    }
    // u, v uniform on [-1, 1] without the square [-1/c, 1/c]^2: both on one side of it has the
    // share 2 ((1 - 1/c) / 2)^2 of 1 - 1/c^2.
    const double share = (1 - 1 / scale) * (1 - 1 / scale) / 2 / (1 - 1 / (scale * scale));
    EXPECT_NEAR(outside / static_cast<double>(draws), share, 0.03) << scale;
    EXPECT_NEAR(straddle / static_cast<double>(draws), 1 - share, 0.03) << scale;
    EXPECT_GT(values_inside, 0);
    EXPECT_GE(lowest, -2 * scale);
    EXPECT_LE(highest, 2 * scale);
    EXPECT_LT(lowest, -1.98 * scale);
    EXPECT_GT(highest, 1.98 * scale);
  }
}

TEST(ValueRange, ScaleOneIsTheTrainingRange) {
  EXPECT_FALSE(test_range(2, 1, false).exclude);
  EXPECT_EQ(draw(test_range(2, 1, false), 3, 8), draw(training_range(2, false), 3, 8));
}

TEST(ValueRange, IntegersAreUniformWithoutTheUpperEnd) {
  std::map<float, int> counts;
  constexpr int per_value = 1000;
  for (const float x : draw(test_range(3, 2, true), 0, 12 * per_value)) ++counts[x];
  ASSERT_EQ(counts.size(), 12u);
  EXPECT_EQ(counts.begin()->first, -6);
  EXPECT_EQ(counts.rbegin()->first, 5);
  double chi_square = 0;
  for (const auto& [value, count] : counts) {
    chi_square += std::pow(count - per_value, 2) / static_cast<double>(per_value);
  }
  EXPECT_LT(chi_square, 24.7);  // 11 degrees of freedom, 1 % level
}

TEST(ValueRange, RefusesImpossibleRanges) {
  for (const double range : {0.0, -1.0, std::nan(""), infinity, 1e30}) {
    EXPECT_THROW(training_range(range, false), Error) << range;
  }
  EXPECT_THROW(training_range(0.5, true), Error);
  EXPECT_THROW(training_range(1e9, true), Error);
  for (const double scale : {0.0, -1.0, std::nan(""), infinity, 1e30, 1.0000001}) {
    EXPECT_THROW(test_range(2, scale, false), Error) << scale;
  }
}

}  // namespace
}  // namespace posattn

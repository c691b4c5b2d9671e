#include "posattn/experiments/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "posattn/base/limits.h"

namespace posattn {
namespace {

TEST(StandardError, OfTheMean) {
  // Variance (2.25 + 0.25 + 0.25 + 2.25) / 3 = 5/3, over 4 values.
  EXPECT_DOUBLE_EQ(standard_error(std::vector<double>{1, 2, 3, 4}), std::sqrt(5.0 / 12));
  EXPECT_EQ(standard_error(std::vector<double>{7, 7, 7}), 0);
  EXPECT_TRUE(std::isnan(standard_error(std::vector<double>{1})));
  EXPECT_TRUE(std::isnan(standard_error(std::vector<double>{})));
}

// The medians of all n^n resamples, sorted.
std::vector<double> all_resampled_medians(const std::vector<double>& values) {
  const size_t n = values.size();
  size_t resamples = 1;
  for (size_t i = 0; i < n; ++i) resamples *= n;
  std::vector<double> medians, resample(n);
  for (size_t code = 0; code < resamples; ++code) {
    for (size_t i = 0, rest = code; i < n; ++i, rest /= n) resample[i] = values[rest % n];
    std::sort(resample.begin(), resample.end());
    medians.push_back((resample[(n - 1) / 2] + resample[n / 2]) / 2);
  }
  std::sort(medians.begin(), medians.end());
  return medians;
}

TEST(MedianInterval, IsThatOfAllResamples) {
  std::mt19937 random(1);
  for (const size_t n : {1, 2, 3, 4, 5, 6, 7}) {
    for (const bool ties : {false, true}) {
      std::vector<double> values(n);
      for (double& value : values) {
        value = ties ? static_cast<double>(random() % 3) : std::ldexp(random(), -20);
      }
      const std::vector<double> medians = all_resampled_medians(values);
      for (const double confidence : {0.42, 0.83, 0.95, 0.991}) {
        // The smallest median with at least this share at or below it; the same from above.
        const double share = (1 - confidence) / 2 * static_cast<double>(medians.size());
        const auto skipped = static_cast<size_t>(std::ceil(share)) - 1;
        const Interval interval = median_interval(values, confidence);
        EXPECT_NEAR(interval.low, medians[skipped], 1e-9) << n << " " << confidence;
        EXPECT_NEAR(interval.high, medians[medians.size() - 1 - skipped], 1e-9)
            << n << " " << confidence;
      }
    }
  }
}

TEST(MedianInterval, OfManyValuesTendsToTheOrderStatistics) {
  // The bootstrap median of the values 1..n is about normal with standard deviation sqrt(n) / 2.
  for (const int n : {400, 401, 2000}) {
    std::vector<double> values;
    for (int i = 1; i <= n; ++i) values.push_back(i);
    const Interval interval = median_interval(values);
    const double middle = (n + 1) / 2.0, reach = 1.96 * std::sqrt(n) / 2;
    EXPECT_NEAR(interval.low, middle - reach, 1.5) << n;
    EXPECT_NEAR(interval.high, middle + reach, 1.5) << n;
  }
}

TEST(MedianInterval, TurnsWithItsValues) {
  std::mt19937 random(2);
  for (size_t n = 1; n <= 30; ++n) {
    std::vector<double> values(n), negated(n);
    for (size_t i = 0; i < n; ++i) {
      values[i] = std::ldexp(random(), -16);
      negated[n - 1 - i] = -values[i];
    }
    const Interval interval = median_interval(values), negated_interval = median_interval(negated);
    EXPECT_EQ(interval.low, -negated_interval.high) << n;
    EXPECT_EQ(interval.high, -negated_interval.low) << n;
    EXPECT_LE(interval.low, interval.high);
  }
}

TEST(MedianInterval, OfNothingOrADivergedRunIsNaN) {
  EXPECT_TRUE(std::isnan(median_interval(std::vector<double>{}).low));
  EXPECT_TRUE(std::isnan(median_interval(std::vector<double>{1, std::nan(""), 2}).high));
  EXPECT_EQ(median_interval(std::vector<double>{1, 2, infinity}).high, infinity);
}

TEST(GrowthExponent, OfAPowerLaw) {
  std::vector<double> x, y;
  for (int c = 2; c <= 10; ++c) {
    x.push_back(c);
    y.push_back(3e-4 * std::pow(c, 2.6));
  }
  EXPECT_NEAR(growth(x, y).exponent, 2.6, 1e-12);
  EXPECT_NEAR(growth(x, y).error, 0, 1e-12);
}

TEST(GrowthExponent, StandardErrorOfTheSlope) {
  // log2: x 0, 1, 2, 3; y 0, 1, 1, 2. Slope 3/5; residuals -0.1, 0.3, -0.3, 0.1 with squares 0.2,
  // over 2 degrees of freedom and sum (x - mean)^2 = 5: sqrt(0.02). Both are free of the base.
  const Growth slope = growth(std::vector<double>{1, 2, 4, 8}, std::vector<double>{1, 2, 2, 4});
  EXPECT_NEAR(slope.exponent, 0.6, 1e-14);
  EXPECT_NEAR(slope.error, std::sqrt(0.02), 1e-14);
}

TEST(GrowthExponent, UsesWhatALogarithmCanShow) {
  const double nan = std::nan("");
  const Growth two = growth(std::vector<double>{0, 1, 2, 3, 4, 5},
                            std::vector<double>{7, 1, 0, nan, 16, infinity});
  EXPECT_NEAR(two.exponent, 2, 1e-14);
  EXPECT_TRUE(std::isnan(two.error));
  EXPECT_TRUE(std::isnan(growth(std::vector<double>{1}, std::vector<double>{1}).exponent));
  EXPECT_TRUE(std::isnan(growth(std::vector<double>{3, 3}, std::vector<double>{1, 2}).exponent));
  EXPECT_THROW(growth(std::vector<double>{1}, std::vector<double>{}), std::invalid_argument);
}

SignedRank test_of(const std::vector<double>& differences) {
  return signed_rank_test(differences, std::vector<double>(differences.size(), 0.0));
}

// Two-sided p-value by trying all signs of the ranks of |differences|.
double p_value_of_all_signs(const std::vector<double>& differences) {
  const size_t n = differences.size();
  std::vector<double> ranks(n);
  for (size_t i = 0; i < n; ++i) {
    for (const double other : differences) {
      if (std::abs(other) < std::abs(differences[i])) ranks[i] += 1;
      if (std::abs(other) == std::abs(differences[i])) ranks[i] += 0.5;
    }
    ranks[i] += 0.5;
  }
  double observed = 0;
  for (size_t i = 0; i < n; ++i) observed += differences[i] > 0 ? ranks[i] : 0;
  double low = 0, high = 0;
  for (size_t signs = 0; signs < (size_t{1} << n); ++signs) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += (signs >> i & 1) != 0 ? ranks[i] : 0;
    low += sum <= observed ? 1 : 0;
    high += sum >= observed ? 1 : 0;
  }
  return std::min(1.0, 2 * std::min(low, high) / static_cast<double>(size_t{1} << n));
}

TEST(SignedRankTest, KnownValues) {
  // All of one sign: 2 of the 2^n choices are as extreme.
  const SignedRank all = test_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(all.pairs, 10);
  EXPECT_EQ(all.statistic, 55);
  EXPECT_EQ(all.p_value, 2.0 / 1024);
  EXPECT_EQ(test_of({-1, -2, -3, -4, -5}).p_value, 2.0 / 32);
  EXPECT_EQ(test_of({-1, -2, -3, -4, -5}).statistic, 0);
  // For n = 10, 25 subsets have a sum up to 8 of {1..10} (sums 0..8: 1 1 1 2 2 3 4 5 6): the 5 %
  // point of the printed tables.
  EXPECT_EQ(test_of({-1, -2, -3, -4, -5, -6, -7, 8, -9, -10}).p_value, 2 * 25.0 / 1024);
}

TEST(SignedRankTest, IsExactWithAndWithoutTies) {
  std::mt19937 random(3);
  for (size_t n = 1; n <= 12; ++n) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      std::vector<double> differences(n);
      for (double& difference : differences) {
        const double size = 1 + static_cast<double>(random() % (repeat % 2 == 0 ? 4 : 1000));
        difference = random() % 3 == 0 ? -size : size;
      }
      EXPECT_NEAR(test_of(differences).p_value, p_value_of_all_signs(differences), 1e-12) << n;
    }
  }
}

TEST(SignedRankTest, LeavesOutZeroAndNaN) {
  const SignedRank test =
      signed_rank_test(std::vector<double>{1, 5, 3, std::nan(""), infinity, infinity},
                       std::vector<double>{1, 4, 1, 2, 2, infinity});
  EXPECT_EQ(test.pairs, 3);
  EXPECT_EQ(test.statistic, 6);
  EXPECT_EQ(test.p_value, 0.25);
  EXPECT_EQ(test_of({0, 0}).pairs, 0);
  EXPECT_EQ(test_of({0, 0}).p_value, 1);
  EXPECT_THROW(signed_rank_test(std::vector<double>{1}, std::vector<double>{}),
               std::invalid_argument);
}

TEST(SignedRankTest, ApproximationContinuesTheExactValues) {
  // Differences 1, -2, 3, 4, -5, 6, ...: two of three positive. 50 pairs are exact, 51 are not, and
  // one more pair changes little.
  std::vector<double> differences;
  for (int i = 1; i <= 50; ++i) differences.push_back(i % 3 == 2 ? -i : i);
  const double exact = test_of(differences).p_value;
  differences.push_back(51);
  const double approximate = test_of(differences).p_value;
  EXPECT_LT(approximate, exact);
  EXPECT_GT(approximate, exact / 2);
  EXPECT_GT(exact, 0.001);
}

}  // namespace
}  // namespace posattn

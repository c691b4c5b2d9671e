#include "posattn/bounds/kendall.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/random.h"

namespace posattn::bounds {
namespace {

int sign_of(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

PairCounts count_plainly(const std::vector<double>& x, const std::vector<double>& y) {
  PairCounts counts;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      counts.excess += sign_of(x[i] - x[j]) * sign_of(y[i] - y[j]);
      counts.differ_x += x[i] != x[j];
      counts.differ_y += y[i] != y[j];
    }
  }
  return counts;
}

TEST(Kendall, CountsWhatPlainCountingDoes) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (int round = 0; round < 300; ++round) {
    const uint32_t size = random.below(40), values = 1 + random.below(30);  // few values: ties
    std::vector<double> x, y;
    for (uint32_t i = 0; i < size; ++i) {
      x.push_back(random.below(values));
      y.push_back(random.below(2) == 0 ? x.back() : random.below(values));
    }
    const PairCounts fast = count_pairs(x, y), plain = count_plainly(x, y);
    EXPECT_EQ(fast.excess, plain.excess);
    EXPECT_EQ(fast.differ_x, plain.differ_x);
    EXPECT_EQ(fast.differ_y, plain.differ_y);
  }
}

TEST(Kendall, KnownValues) {
  const std::vector<double> up = {1, 2, 3, 4}, down = {9, 7, 5, 0}, swapped = {1, 3, 2, 4};
  EXPECT_EQ(count_pairs(up, up).tau(), 1);
  EXPECT_EQ(count_pairs(up, down).tau(), -1);
  EXPECT_DOUBLE_EQ(count_pairs(up, swapped).tau(), 4.0 / 6);
  const std::vector<double> tied = {1, 1, 2, 2};
  EXPECT_DOUBLE_EQ(count_pairs(up, tied).tau(), 4 / std::sqrt(6.0 * 4));
  const std::vector<double> constant = {5, 5, 5, 5};
  EXPECT_TRUE(std::isnan(count_pairs(up, constant).tau()));
}

// Two strata that agree inside, and disagree with each other.
TEST(Kendall, StrataLookInsideOnly) {
  std::vector<RankedRun> runs;
  for (int i = 0; i < 10; ++i) {
    runs.push_back({.x = double(i), .y = 100.0 + i, .stratum = 0});
    runs.push_back({.x = 100.0 + i, .y = double(i), .stratum = 1});
  }
  const RankCorrelation inside = rank_correlation(runs);
  EXPECT_EQ(inside.tau, 1);
  EXPECT_EQ(inside.low, 1);
  for (RankedRun& run : runs) run.stratum = 0;
  EXPECT_LT(rank_correlation(runs).tau, 0);
}

// In 95 of 100 experiments the interval holds the tau that the runs were drawn with: y = x + noise,
// both normal with correlation r, has tau = (2 / pi) arcsin(r).
TEST(Kendall, IntervalHoldsTheTruth) {
  const double truth = 2 / std::acos(-1.0) * std::asin(std::sqrt(0.5));
  int held = 0;
  constexpr int experiments = 100;
  for (int experiment = 0; experiment < experiments; ++experiment) {
    RandomStream random(2, Purpose::test_data, 0, experiment);
    std::vector<RankedRun> runs;
    for (int i = 0; i < 40; ++i) {
      const double x = random.normal();
      runs.push_back({.x = x, .y = x + random.normal()});
    }
    const RankCorrelation found = rank_correlation(runs, 200);
    held += found.low <= truth && truth <= found.high;
  }
  EXPECT_GE(held, 87);
  EXPECT_LT(held, experiments);
}

TEST(Kendall, SameSeedSameInterval) {
  const std::vector<RankedRun> runs = {{1, 2}, {2, 1}, {3, 5}, {4, 3}, {5, 9}, {6, 7}, {7, 8}};
  const RankCorrelation a = rank_correlation(runs), b = rank_correlation(runs);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LT(a.low, a.tau);
  EXPECT_LE(a.high, 1);
  EXPECT_TRUE(std::isnan(rank_correlation({{1, 2}}).tau));
}

}  // namespace
}  // namespace posattn::bounds

// Statistics over the runs of a point or between two curves. Everything is computed from all runs;
// nothing is sampled.
#pragma once

#include <cstdint>
#include <span>

namespace posattn {

struct Interval {
  double low = 0, high = 0;
};

// Standard error of the mean; NaN for fewer than two values.
double standard_error(std::span<const double> values);

// Percentile bootstrap interval of the median. The bootstrap distribution of a median is known
// exactly (which of the order statistics a resample's middle hits), so no resampling is done. NaN
// for no values and where one is NaN. Below six values it is [min, max] and covers the median less
// often than the confidence says: 1 - 2^(1 - n), 94 % for five.
constexpr int64_t fewest_for_interval = 6;
Interval median_interval(std::span<const double> values, double confidence = 0.95);

// Least-squares slope of log y against log x: the exponent k of y ~ x^k. NaN for fewer than two
// points that a logarithm can show.
struct Growth {
  double exponent = 0;
  // Standard error of the slope from the residuals of the fit; NaN for two points. How much the y
  // themselves vary, from run to run, is not in it.
  double error = 0;
};
Growth growth(std::span<const double> x, std::span<const double> y);

// Wilcoxon's signed-rank test of paired differences a_i - b_i: exact two-sided p-value for up to 50
// pairs (with ties: exact over the observed ranks), normal approximation beyond. Differences that
// are zero or NaN are left out.
struct SignedRank {
  int64_t pairs = 0;     // that count
  double statistic = 0;  // sum of ranks of positive differences
  double p_value = 1;
};
SignedRank signed_rank_test(std::span<const double> a, std::span<const double> b);

}  // namespace posattn

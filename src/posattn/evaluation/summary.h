// Several runs of one kind (the seeds of a fleet) in a few numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/evaluation/measurement.h"

namespace posattn {

// Quantile q of n sorted values lies at position q (n - 1), interpolated linearly between its two
// neighbours (the default of NumPy and R). A NaN among the values makes every statistic NaN, so a
// failed run is never silently left out; infinities are ordered like numbers (a mean of both is
// NaN). Of no values all statistics are NaN.
struct Spread {
  int64_t count = 0;
  int64_t non_finite = 0;  // NaN or infinite, of `count`
  double minimum = 0, lower_quartile = 0, median = 0, upper_quartile = 0, maximum = 0;
  double mean = 0;
};

Spread spread_of(std::span<const double> values);

// Quantile q of sorted values: at least one, and none of them NaN.
double quantile(std::span<const double> sorted, double q);

// The spread over runs or models of the value that each has at one place. Those without it are left
// out.
Spread spread_at(std::span<const std::vector<Measurement>* const> runs, const MeasuredPlace& place);

}  // namespace posattn

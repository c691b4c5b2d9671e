#include "posattn/evaluation/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace posattn {

double quantile(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const double share = position - static_cast<double>(below);
  const double low = sorted[below];
  // Without this an infinite neighbour of no weight would give NaN.
  if (share == 0 || sorted[below + 1] == low) return low;
  return low + share * (sorted[below + 1] - low);
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.count = static_cast<int64_t>(values.size());
  spread.non_finite =
      std::count_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  if (values.empty() ||
      std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    spread.minimum = spread.lower_quartile = spread.median = nan;
    spread.upper_quartile = spread.maximum = spread.mean = nan;
    return spread;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  spread.minimum = sorted.front();
  spread.lower_quartile = quantile(sorted, 0.25);
  spread.median = quantile(sorted, 0.5);
  spread.upper_quartile = quantile(sorted, 0.75);
  spread.maximum = sorted.back();
  spread.mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  return spread;
}

Spread spread_at(std::span<const std::vector<Measurement>* const> runs,
                 const MeasuredPlace& place) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const std::vector<Measurement>* rows : runs) {
    if (const std::optional<double> value = find_value(*rows, place)) values.push_back(*value);
  }
  return spread_of(values);
}

}  // namespace posattn

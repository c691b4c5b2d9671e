#include "posattn/evaluation/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace posattn {
namespace {

template <class Member>
Spread spread_over(std::span<const std::vector<ScaleResult>> models, size_t scale, Member member) {
  std::vector<double> values;
  values.reserve(models.size());
  for (const std::vector<ScaleResult>& model : models) values.push_back(model[scale].*member);
  return spread_of(values);
}

}  // namespace

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

std::vector<ScaleSummary> summarise(std::span<const std::vector<ScaleResult>> models) {
  std::vector<ScaleSummary> summaries;
  if (models.empty()) return summaries;
  for (size_t scale = 0; scale < models[0].size(); ++scale) {
    for (const std::vector<ScaleResult>& model : models) {
      if (model.size() != models[0].size() || model[scale].c != models[0][scale].c) {
        throw std::invalid_argument("models were evaluated at different scales");
      }
    }
    summaries.push_back({.c = models[0][scale].c,
                         .mse = spread_over(models, scale, &ScaleResult::mse),
                         .mse_over_c2 = spread_over(models, scale, &ScaleResult::mse_over_c2),
                         .accuracy = spread_over(models, scale, &ScaleResult::accuracy)});
  }
  return summaries;
}

}  // namespace posattn

#include "posattn/bounds/samples_needed.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/norm_bound.h"

namespace posattn::bounds {
namespace {

// Both bounds fall with m like 1 / sqrt(m), up to factors of sqrt(ln m): bisection in ln m.
template <class LogBound>
double smallest_log_samples(double log_gap, const LogBound& log_bound) {
  constexpr double thousandth = 1e-3;
  double too_few = 0, enough = 1;
  if (log_bound(1.0) <= log_gap) return 0;
  while (log_bound(std::exp(enough)) > log_gap) {
    too_few = enough;
    enough *= 2;
    if (enough > 600) return std::numeric_limits<double>::infinity();  // beyond 1e260
  }
  while (enough - too_few > thousandth) {
    const double middle = (too_few + enough) / 2;
    (log_bound(std::exp(middle)) <= log_gap ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

SamplesNeeded samples_needed(const NetworkNorms& norms, const BoundSetting& setting, double gap) {
  if (!(gap > 0) || !std::isfinite(gap)) {
    throw Error(ExitCode::usage, fmt::format("--samples-for {}", gap),
                "a gap above 0: the loss counts up to b^2");
  }
  const auto with = [&](double samples) {
    BoundSetting changed = setting;
    changed.samples = samples;
    return changed;
  };
  const double log_gap = std::log(gap);
  return {.gap = gap,
          .log_by_norms = smallest_log_samples(
              log_gap, [&](double m) { return norm_bound(norms, with(m)).log_gap; }),
          .log_by_count = smallest_log_samples(
              log_gap, [&](double m) { return std::log(count_bound(norms, with(m)).gap); })};
}

}  // namespace posattn::bounds

// Kendall's rank correlation (tau-b) of two numbers over runs: of the pairs of runs, how many more
// have the two in the same order than in the opposite one. Ties count as neither.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace posattn::bounds {

// Counts over pairs of places; those of several strata add up.
struct PairCounts {
  int64_t excess = 0;    // pairs in the same order, less those in the opposite one
  int64_t differ_x = 0;  // pairs with different x
  int64_t differ_y = 0;

  PairCounts& operator+=(const PairCounts& other);
  // excess / sqrt(differ_x differ_y): 1 where all agree, -1 where none does; NaN where x or y never
  // differs.
  double tau() const;
};

// By sorting (Knight 1966), in n log n steps. x and y are of one size and without NaN.
PairCounts count_pairs(std::span<const double> x, std::span<const double> y);

// Of one run: what is compared, and which runs it is compared with.
struct RankedRun {
  double x = 0, y = 0;
  int stratum = 0;
};

struct RankCorrelation {
  double tau = 0;
  double low = 0, high = 0;  // percentile bootstrap interval
};

// Over pairs of runs of one stratum (one for all: over all pairs). The interval holds 95 % of the
// tau of `resamples` bootstrap samples, drawn with replacement inside each stratum; NaN where some
// resample has no tau.
RankCorrelation rank_correlation(const std::vector<RankedRun>& runs, int resamples = 2000,
                                 uint64_t seed = 0);

}  // namespace posattn::bounds

#include "posattn/bounds/kendall.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>

#include "posattn/base/random.h"
#include "posattn/evaluation/summary.h"

namespace posattn::bounds {
namespace {

int64_t pairs_of(int64_t count) { return count * (count - 1) / 2; }

// Pairs with equal values in a range that is sorted by them.
template <class Same>
int64_t tied_pairs(size_t count, Same same) {
  int64_t pairs = 0;
  for (size_t first = 0; first < count;) {
    size_t end = first + 1;
    while (end < count && same(first, end)) ++end;
    pairs += pairs_of(static_cast<int64_t>(end - first));
    first = end;
  }
  return pairs;
}

// Sorts, and returns how many pairs stood in the wrong order; equal ones do not count.
int64_t sort_and_count(std::span<double> values, std::vector<double>& room) {
  if (values.size() < 2) return 0;
  const size_t middle = values.size() / 2;
  int64_t swapped =
      sort_and_count(values.first(middle), room) + sort_and_count(values.subspan(middle), room);
  room.clear();
  size_t left = 0, right = middle;
  while (left < middle || right < values.size()) {
    if (right == values.size() || (left < middle && values[left] <= values[right])) {
      room.push_back(values[left++]);
    } else {
      swapped += static_cast<int64_t>(middle - left);
      room.push_back(values[right++]);
    }
  }
  std::ranges::copy(room, values.begin());
  return swapped;
}

struct Stratum {
  std::vector<double> x, y;
};

PairCounts resampled(const Stratum& stratum, RandomStream& random) {
  Stratum drawn;
  const auto runs = static_cast<uint32_t>(stratum.x.size());
  for (uint32_t i = 0; i < runs; ++i) {
    const uint32_t chosen = random.below(runs);
    drawn.x.push_back(stratum.x[chosen]);
    drawn.y.push_back(stratum.y[chosen]);
  }
  return count_pairs(drawn.x, drawn.y);
}

}  // namespace

PairCounts& PairCounts::operator+=(const PairCounts& other) {
  excess += other.excess;
  differ_x += other.differ_x;
  differ_y += other.differ_y;
  return *this;
}

double PairCounts::tau() const {
  if (differ_x == 0 || differ_y == 0) return NAN;
  return static_cast<double>(excess) /
         std::sqrt(static_cast<double>(differ_x) * static_cast<double>(differ_y));
}

PairCounts count_pairs(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  const size_t count = x.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] < x[b] : y[a] < y[b]; });
  const int64_t same_x =
      tied_pairs(count, [&](size_t a, size_t b) { return x[order[a]] == x[order[b]]; });
  const int64_t same_both = tied_pairs(count, [&](size_t a, size_t b) {
    return x[order[a]] == x[order[b]] && y[order[a]] == y[order[b]];
  });
  std::vector<double> by_x(count), room;
  for (size_t i = 0; i < count; ++i) by_x[i] = y[order[i]];
  const int64_t opposite = sort_and_count(by_x, room);
  const int64_t same_y = tied_pairs(count, [&](size_t a, size_t b) { return by_x[a] == by_x[b]; });
  const int64_t all = pairs_of(static_cast<int64_t>(count));
  const int64_t differ_in_both = all - same_x - same_y + same_both;
  return {
      .excess = differ_in_both - 2 * opposite, .differ_x = all - same_x, .differ_y = all - same_y};
}

RankCorrelation rank_correlation(const std::vector<RankedRun>& runs, int resamples, uint64_t seed) {
  std::map<int, Stratum> strata;
  for (const RankedRun& run : runs) {
    strata[run.stratum].x.push_back(run.x);
    strata[run.stratum].y.push_back(run.y);
  }
  PairCounts all;
  for (const auto& [number, stratum] : strata) all += count_pairs(stratum.x, stratum.y);
  std::vector<double> taus;
  for (int i = 0; i < resamples; ++i) {
    RandomStream random(seed, Purpose::evaluation_data, 0, static_cast<uint32_t>(i));
    PairCounts counts;
    for (const auto& [number, stratum] : strata) counts += resampled(stratum, random);
    taus.push_back(counts.tau());
  }
  RankCorrelation result{.tau = all.tau(), .low = NAN, .high = NAN};
  if (taus.empty() || std::ranges::any_of(taus, [](double tau) { return std::isnan(tau); })) {
    return result;
  }
  std::ranges::sort(taus);
  result.low = quantile(taus, 0.025);
  result.high = quantile(taus, 0.975);
  return result;
}

}  // namespace posattn::bounds

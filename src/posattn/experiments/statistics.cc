#include "posattn/experiments/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace posattn {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double log_binomial(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// P(at least `least` of n draws are among the i smallest of n values), each draw being one of the n
// with equal chance.
double at_least_among_smallest(int64_t least, int64_t i, int64_t n) {
  if (i == 0) return 0;
  if (i == n) return 1;
  const auto count = static_cast<double>(n);
  const double log_in = std::log(static_cast<double>(i) / count);
  const double log_out = std::log(static_cast<double>(n - i) / count);
  double sum = 0;
  for (int64_t k = least; k <= n; ++k) {
    const auto hits = static_cast<double>(k);
    sum += std::exp(log_binomial(count, hits) + hits * log_in + (count - hits) * log_out);
  }
  return std::min(sum, 1.0);
}

struct Weighted {
  double value, probability;
};

// Log of P(m draws are all among the i smallest of n and hit the i-th).
double log_reaching(int64_t m, int64_t i, int64_t n) {
  const auto draws = static_cast<double>(m);
  const double log_within = draws * std::log(static_cast<double>(i) / static_cast<double>(n));
  if (i == 1) return log_within;
  const double log_ratio = draws * std::log(static_cast<double>(i - 1) / static_cast<double>(i));
  return log_within + std::log1p(-std::exp(log_ratio));
}

// The medians a resample of sorted values can have. An odd resample's middle is one of the values;
// it is at most the i-th where more than half of the draws are.
std::vector<Weighted> odd_medians(const std::vector<double>& sorted) {
  const auto n = static_cast<int64_t>(sorted.size());
  std::vector<Weighted> medians;
  double below = 0;
  for (int64_t i = 1; i <= n; ++i) {
    const double up_to = at_least_among_smallest(n / 2 + 1, i, n);
    medians.push_back({sorted[i - 1], up_to - below});
    below = up_to;
  }
  return medians;
}

// The median of an even resample, n = 2m, is the mean of the middle two draws. They are the i-th
// and the j-th value, i < j, where m draws have the i-th as their largest and the other m the j-th
// as their smallest:
//   C(2m, m) (i^m - (i-1)^m) ((n-j+1)^m - (n-j)^m) / n^n
// and both the i-th with what the m-th smallest draw being the i-th leaves.
std::vector<Weighted> even_medians(const std::vector<double>& sorted) {
  constexpr double negligible = 1e-20;
  const auto n = static_cast<int64_t>(sorted.size());
  const int64_t m = n / 2;
  const double log_choices = log_binomial(static_cast<double>(n), static_cast<double>(m));
  std::vector<Weighted> medians;
  double below = 0;
  for (int64_t i = 1; i <= n; ++i) {
    const double log_lower = log_choices + log_reaching(m, i, n);
    const double up_to = at_least_among_smallest(m, i, n);
    double both = up_to - below;
    below = up_to;
    if (i < n) {
      const double share = static_cast<double>(n - i) / static_cast<double>(n);
      both -= std::exp(log_lower + static_cast<double>(m) * std::log(share));
    }
    medians.push_back({sorted[i - 1], std::max(both, 0.0)});
    for (int64_t j = i + 1; j <= n; ++j) {
      const double probability = std::exp(log_lower + log_reaching(m, n - j + 1, n));
      if (probability < negligible) break;  // it only falls with j
      medians.push_back({std::midpoint(sorted[i - 1], sorted[j - 1]), probability});
    }
  }
  return medians;
}

// The first value, from the front, at which the probability so far reaches `tail`.
template <class Iterator>
double tail_value(Iterator first, Iterator last, double tail) {
  double sum = 0;
  for (Iterator at = first; at != last; ++at) {
    sum += at->probability;
    if (sum >= tail) return at->value;
  }
  return std::prev(last)->value;
}

// Ranks of |differences| from 1, equal ones sharing the mean of theirs; doubled, to be whole.
std::vector<int64_t> doubled_ranks(const std::vector<double>& differences) {
  std::vector<size_t> order(differences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size_of = [&](size_t i) { return std::abs(differences[i]); };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return size_of(a) < size_of(b); });
  std::vector<int64_t> ranks(differences.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && size_of(order[end]) == size_of(order[first])) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<int64_t>(first + end + 1);
    first = end;
  }
  return ranks;
}

// Two-sided, over all 2^n equally likely choices of signs.
double exact_p_value(const std::vector<int64_t>& ranks, int64_t doubled_statistic) {
  const int64_t total = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  std::vector<double> choices(static_cast<size_t>(total) + 1, 0.0);  // by sum of positive ranks
  choices[0] = 1;
  int64_t reached = 0;
  for (const int64_t rank : ranks) {
    reached += rank;
    for (int64_t sum = reached; sum >= rank; --sum) choices[sum] += choices[sum - rank];
  }
  const auto at = choices.begin() + doubled_statistic;
  const double low = std::accumulate(choices.begin(), at + 1, 0.0);
  const double high = std::accumulate(at, choices.end(), 0.0);
  return std::min(1.0, 2 * std::min(low, high) * std::exp2(-static_cast<double>(ranks.size())));
}

// The sum's variance is that of independent signs, sum rank^2 / 4; half a rank makes up for the
// steps that a smooth curve does not have.
double approximate_p_value(const std::vector<int64_t>& ranks, double statistic) {
  double mean = 0, variance = 0;
  for (const int64_t doubled : ranks) {
    const double rank = static_cast<double>(doubled) / 2;
    mean += rank / 2;
    variance += rank * rank / 4;
  }
  const double distance = std::max(0.0, std::abs(statistic - mean) - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace

double standard_error(std::span<const double> values) {
  if (values.size() < 2) return nan;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

Interval median_interval(std::span<const double> values, double confidence) {
  if (values.empty() ||
      std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    return {nan, nan};
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<Weighted> medians =
      sorted.size() % 2 == 1 ? odd_medians(sorted) : even_medians(sorted);
  std::sort(medians.begin(), medians.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  const double tail = (1 - confidence) / 2;
  return {tail_value(medians.begin(), medians.end(), tail),
          tail_value(medians.rbegin(), medians.rend(), tail)};
}

Growth growth(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) throw std::invalid_argument("growth: as many y as x");
  std::vector<double> log_x, log_y;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = std::log(x[i]), v = std::log(y[i]);
    if (!std::isfinite(u) || !std::isfinite(v)) continue;
    log_x.push_back(u);
    log_y.push_back(v);
  }
  if (log_x.size() < 2) return {nan, nan};
  const double mean_x = mean_of(log_x), mean_y = mean_of(log_y);
  double xx = 0, xy = 0;
  for (size_t i = 0; i < log_x.size(); ++i) {
    xx += (log_x[i] - mean_x) * (log_x[i] - mean_x);
    xy += (log_x[i] - mean_x) * (log_y[i] - mean_y);
  }
  if (xx == 0) return {nan, nan};
  const double slope = xy / xx;
  double squares = 0;
  for (size_t i = 0; i < log_x.size(); ++i) {
    const double rest = log_y[i] - mean_y - slope * (log_x[i] - mean_x);
    squares += rest * rest;
  }
  const auto freedom = static_cast<double>(log_x.size()) - 2;
  return {slope, freedom > 0 ? std::sqrt(squares / freedom / xx) : nan};
}

SignedRank signed_rank_test(std::span<const double> a, std::span<const double> b) {
  constexpr size_t exact_limit = 50;
  if (a.size() != b.size()) throw std::invalid_argument("signed_rank_test: values come in pairs");
  std::vector<double> differences;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = a[i] - b[i];
    if (difference != 0 && !std::isnan(difference)) differences.push_back(difference);
  }
  SignedRank test{.pairs = static_cast<int64_t>(differences.size())};
  if (differences.empty()) return test;
  const std::vector<int64_t> ranks = doubled_ranks(differences);
  int64_t positive = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (differences[i] > 0) positive += ranks[i];
  }
  test.statistic = static_cast<double>(positive) / 2;
  test.p_value = ranks.size() <= exact_limit ? exact_p_value(ranks, positive)
                                             : approximate_p_value(ranks, test.statistic);
  return test;
}

}  // namespace posattn

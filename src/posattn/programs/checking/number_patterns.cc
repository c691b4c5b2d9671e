#include <algorithm>
#include <cmath>

#include "posattn/programs/checking/hard_inputs.h"

namespace posattn {
namespace {

using Row = std::vector<double>;

Row uniform_row(int count, const NumberRange& range, RandomStream& random) {
  Row row(count);
  for (double& x : row) x = range.uniform(random);
  return row;
}

Row equal(int count, const NumberRange& range, RandomStream& random) {
  return Row(count, range.special(random));
}

// Some of few different values, each as likely as the others.
Row few_values(int count, const NumberRange& range, RandomStream& random) {
  Row values(2 + below(3, random));
  for (double& x : values) x = range.special(random);
  Row row(count);
  for (double& x : row) x = values[below(values.size(), random)];
  return row;
}

// Two values, in blocks of a power of two that have different shares of them; sorted blocks are
// what a merge meets.
Row two_values(int count, const NumberRange& range, RandomStream& random) {
  const auto [a, b] = std::minmax({range.special(random), range.special(random)});
  int block = 1 << below(static_cast<size_t>(std::log2(count)) + 2, random);
  block = std::min(block, count);
  const bool sorted = random.uniform() < 0.5F;
  Row row(count);
  for (int first = 0; first < count; first += block) {
    const int last = std::min(count, first + block);
    const float share = random.uniform();
    for (int i = first; i < last; ++i) row[i] = random.uniform() < share ? b : a;
    if (sorted) std::sort(row.begin() + first, row.begin() + last);
  }
  return row;
}

Row ends(int count, const NumberRange& range, RandomStream& random) {
  Row row(count);
  const float share = random.uniform();
  for (double& x : row) x = random.uniform() < share ? range.low : range.high;
  return row;
}

Row ascending(int count, const NumberRange& range, RandomStream& random) {
  Row row = uniform_row(count, range, random);
  std::ranges::sort(row);
  return row;
}
Row descending(int count, const NumberRange& range, RandomStream& random) {
  Row row = ascending(count, range, random);
  std::ranges::reverse(row);
  return row;
}
Row rotated(int count, const NumberRange& range, RandomStream& random) {
  Row row =
      random.uniform() < 0.5F ? ascending(count, range, random) : descending(count, range, random);
  std::rotate(row.begin(), row.begin() + below(count, random), row.end());
  return row;
}
Row up_and_down(int count, const NumberRange& range, RandomStream& random) {
  Row row = ascending(count, range, random);
  std::reverse(row.begin() + below(count, random), row.end());
  if (random.uniform() < 0.5F) std::ranges::reverse(row);
  return row;
}
Row two_swapped(int count, const NumberRange& range, RandomStream& random) {
  Row row = ascending(count, range, random);
  std::swap(row[below(count, random)], row[below(count, random)]);
  return row;
}

Row one_different(int count, const NumberRange& range, RandomStream& random) {
  Row row = equal(count, range, random);
  row[below(count, random)] = range.special(random);
  return row;
}
// Mostly zeros, or what comes nearest.
Row few_given(int count, const NumberRange& range, RandomStream& random) {
  Row row(count, range.allowed(0));
  for (int k = 1 + below(3, random); k > 0; --k) row[below(count, random)] = range.uniform(random);
  return row;
}
Row specials(int count, const NumberRange& range, RandomStream& random) {
  Row row(count);
  for (double& x : row) x = range.special(random);
  return row;
}

// Numbers that differ by at most one, or by the last digits of a float.
Row near_ties(int count, const NumberRange& range, RandomStream& random) {
  const double base = range.uniform(random);
  Row row(count);
  for (double& x : row) {
    const int step = below(3, random) - 1;
    x = range.allowed(range.whole ? base + step : base * (1 + step * 0x1p-22));
  }
  return row;
}

Row periodic(int count, const NumberRange& range, RandomStream& random) {
  const int period = 1 + below(std::max(1, count / 2), random);
  Row row = uniform_row(count, range, random);
  for (int i = period; i < count; ++i) row[i] = row[i - period];
  return row;
}
Row runs(int count, const NumberRange& range, RandomStream& random) {
  Row row = uniform_row(count, range, random);
  const float stay = random.uniform();
  for (int i = 1; i < count; ++i) {
    if (random.uniform() < stay) row[i] = row[i - 1];
  }
  return row;
}

Row magnitudes(int count, const NumberRange& range, RandomStream& random) {
  Row row(count);
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  for (double& x : row) {
    const double size = largest * std::exp2(-24.0 * random.uniform());
    x = range.allowed(random.uniform() < 0.5F ? -size : size);
  }
  return row;
}

// Pairs whose sum or difference is a number of the program.
Row special_sums(int count, const NumberRange& range, RandomStream& random) {
  Row row = uniform_row(count, range, random);
  const double total = range.special(random), sign = random.uniform() < 0.5F ? -1 : 1;
  const int offset = 1 + below(count, random);
  for (int i = 0; i + offset < count; i += 2 * offset) {
    row[i + offset] = range.allowed(sign * (total - row[i]));
  }
  return row;
}

using Pattern = Row (*)(int count, const NumberRange& range, RandomStream& random);
constexpr Pattern patterns[] = {equal,      two_values,    few_values, ends,         ascending,
                                two_values, descending,    rotated,    up_and_down,  two_swapped,
                                two_values, one_different, few_given,  specials,     near_ties,
                                periodic,   runs,          magnitudes, special_sums, uniform_row};

}  // namespace

double NumberRange::allowed(double x) const {
  return std::clamp(whole ? std::round(x) : x, low, high);
}

double NumberRange::uniform(RandomStream& random) const {
  // 48 random bits: a float's 24 are fewer than some ranges have numbers.
  double share =
      random.uniform();  // two statements: compilers order the parts of a sum differently
  share += double{random.uniform()} * 0x1p-24;
  return whole ? std::min(high, low + std::floor(share * (high - low + 1)))
               : low + share * (high - low);
}

double NumberRange::special(RandomStream& random) const {
  const int choice = below(8, random);
  if (choice == 0) return low;
  if (choice == 1) return high;
  if (choice == 2) return allowed(0);
  if (choice == 3) return allowed(whole ? low + 1 + below(2, random) * (high - low - 2) : 1);
  if (choice < 7 && !specials.empty()) {
    const double near = below(3, random) - 1;
    return allowed(specials[below(specials.size(), random)] + (whole ? near : near * 0x1p-20));
  }
  return uniform(random);
}

int number_pattern_count() { return static_cast<int>(std::size(patterns)); }

std::vector<double> patterned(int64_t pattern, int count, const NumberRange& range,
                              RandomStream& random) {
  return patterns[pattern % number_pattern_count()](count, range, random);
}

}  // namespace posattn

// Rows of numbers with a pattern: ties, ends of the range, orders, magnitudes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

// A whole number from 0 to bound - 1.
inline int below(size_t bound, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<uint32_t>(bound)));
}

// The numbers that a row may hold.
struct NumberRange {
  double low = 0, high = 1;
  bool whole = false;
  std::span<const double> specials;  // numbers that matter to the program; they may lie outside

  // The nearest number that is allowed.
  double allowed(double x) const;
  double uniform(RandomStream& random) const;
  // An end, zero, a special number or one next to it; or any number.
  double special(RandomStream& random) const;
};

int number_pattern_count();

// `count` numbers of the pattern `pattern` mod number_pattern_count().
std::vector<double> patterned(int64_t pattern, int count, const NumberRange& range,
                              RandomStream& random);

}  // namespace posattn

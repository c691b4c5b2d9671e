// Sums of scaled values: what a dot product of the network computes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "posattn/base/limits.h"
#include "posattn/programs/form/expression.h"

namespace posattn {

// Maps the index of a value to its factor; factors are not zero.
using LinearForm = std::map<int, double>;

inline void add_term(LinearForm& form, int value, double factor) {
  const auto [place, added] = form.try_emplace(value, factor);
  if (!added) place->second += factor;
  if (place->second == 0) form.erase(place);
}
inline void add_scaled(LinearForm& form, const LinearForm& other, double factor) {
  for (const auto& [value, of_other] : other) add_term(form, value, factor * of_other);
}
inline LinearForm scaled(const LinearForm& form, double factor) {
  LinearForm result;
  add_scaled(result, form, factor);
  return result;
}
// a + factor b
inline LinearForm combined(const LinearForm& a, double factor, const LinearForm& b) {
  LinearForm result = a;
  add_scaled(result, b, factor);
  return result;
}
// A power of two to take out of a form: that changes no digit.
inline double common_factor(const LinearForm& form) {
  return std::exp2(std::floor(std::log2(std::abs(form.begin()->second))));
}

// The largest power of two that divides a number that is not zero.
inline double quantum(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(x), &exponent);
  const auto digits = static_cast<uint64_t>(std::ldexp(mantissa, 53));
  return std::ldexp(1.0, exponent - 53 + std::countr_zero(digits));
}

// What a value may be, inclusive; infinite for reals.
struct Bounds {
  double low, high;
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

inline Bounds bounds_of(const WordType& type) {
  if (type.is_real()) return {-infinity, infinity};
  return {static_cast<double>(type.low), static_cast<double>(type.high)};
}
// of(value): the bounds of a term's value.
template <class BoundsOf>
Bounds bounds_of(const LinearForm& form, const BoundsOf& of) {
  Bounds sum{0, 0};
  for (const auto& [value, factor] : form) {
    const Bounds term = of(value);
    sum.low += factor > 0 ? factor * term.low : factor * term.high;
    sum.high += factor > 0 ? factor * term.high : factor * term.low;
  }
  return sum;
}

}  // namespace posattn

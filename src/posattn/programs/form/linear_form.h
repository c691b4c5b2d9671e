// Sums of scaled values: what a dot product of the network computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace posattn {

// From the index of a value to its factor; factors are not zero.
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

// What a value may be, inclusive; infinite for reals.
struct Bounds {
  double low, high;
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

}  // namespace posattn

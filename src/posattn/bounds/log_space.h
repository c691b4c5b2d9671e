// Numbers as their natural logarithms: bounds of deep networks leave the range of double, their
// logarithms do not.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

namespace posattn::bounds {

inline constexpr double log_zero = -std::numeric_limits<double>::infinity();

// ln(sum of e^x)
inline double log_sum(std::span<const double> logs) {
  double greatest = log_zero;
  for (const double x : logs) greatest = std::max(greatest, x);
  if (greatest == log_zero) return log_zero;
  double sum = 0;
  for (const double x : logs) sum += std::exp(x - greatest);
  return greatest + std::log(sum);
}
inline double log_sum(std::initializer_list<double> logs) {
  return log_sum(std::span<const double>(logs.begin(), logs.size()));
}

inline double to_log10(double log) { return log / std::log(10.0); }

}  // namespace posattn::bounds

// How far outputs lie apart, measured by how much the expected ones vary.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace posattn::simulation {

inline double standard_deviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double sum = 0;
  for (const double x : values) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / count);
}

// Mean square of the differences.
inline double mean_square(const auto& left, const auto& right) {
  double sum = 0;
  for (size_t k = 0; k < left.size(); ++k) {
    const double error = double{left[k]} - double{right[k]};
    sum += error * error;
  }
  return sum / static_cast<double>(left.size());
}

// Root mean square error in standard deviations of what is expected.
inline double relative_error(const std::vector<double>& found,
                             const std::vector<double>& expected) {
  return std::sqrt(mean_square(found, expected)) / standard_deviation(expected);
}

}  // namespace posattn::simulation

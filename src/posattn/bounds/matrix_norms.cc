#include "posattn/bounds/matrix_norms.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/simulation/singular_values.h"

namespace posattn::bounds {

double spectral_norm(const Matrix& matrix) {
  if (matrix.values.empty()) return 0;
  if (!std::ranges::all_of(matrix.values, [](double x) { return std::isfinite(x); })) {
    throw Error(ExitCode::data, "a weight is not finite", "finite weights");
  }
  return simulation::largest_singular_value(matrix);
}

double length_of(const std::vector<double>& vector) {
  double largest = 0, sum = 0;  // scaled: squares of huge weights would overflow
  for (const double x : vector) largest = std::max(largest, std::abs(x));
  if (largest == 0) return 0;
  for (const double x : vector) sum += (x / largest) * (x / largest);
  return largest * std::sqrt(sum);
}

double frobenius_norm(const Matrix& matrix) { return length_of(matrix.values); }

double two_one_norm(const Matrix& matrix) {
  double sum = 0;
  for (int r = 0; r < matrix.rows; ++r) {
    sum += length_of({matrix.row(r), matrix.row(r) + matrix.columns});
  }
  return sum;
}

MatrixNorms norms_of(const Matrix& matrix) {
  return {.spectral = spectral_norm(matrix),
          .two_one = two_one_norm(matrix),
          .frobenius = frobenius_norm(matrix)};
}

Matrix with_columns(const Matrix& left, const Matrix& right) {
  Matrix result(left.rows, left.columns + right.columns);
  for (int r = 0; r < left.rows; ++r) {
    std::copy_n(left.row(r), left.columns, result.row(r));
    std::copy_n(right.row(r), right.columns, result.row(r) + left.columns);
  }
  return result;
}

Matrix with_row(const Matrix& matrix, const std::vector<double>& row) {
  Matrix result = matrix;
  ++result.rows;
  result.values.insert(result.values.end(), row.begin(), row.end());
  return result;
}

}  // namespace posattn::bounds

#include "posattn/bounds/matrix_norms.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"

extern "C" {
// LAPACK, column-major; the length of `job` comes last, as Fortran passes it.
void dgesdd_(const char* job, const int* rows, const int* columns, double* matrix,
             const int* leading, double* values, double* left, const int* left_leading,
             double* right, const int* right_leading, double* work, const int* work_size,
             int* integer_work, int* result, size_t job_length);
}

namespace posattn::bounds {
namespace {

// Singular values, falling. Rows and columns may be exchanged: both have the same.
std::vector<double> singular_values_of(Matrix matrix) {
  blas_info();  // one thread, so that sums have one order
  const int rows = matrix.columns, columns = matrix.rows, less = std::min(rows, columns);
  std::vector<double> values(less);
  std::vector<int> integer_work(8 * static_cast<size_t>(less));
  double nothing = 0, best_size = 0;
  const int one = 1, ask = -1;
  int result = 0;
  const auto call = [&](double* work, const int* size) {
    dgesdd_("N", &rows, &columns, matrix.values.data(), &rows, values.data(), &nothing, &one,
            &nothing, &one, work, size, integer_work.data(), &result, 1);
  };
  call(&best_size, &ask);
  const int size = static_cast<int>(best_size);
  std::vector<double> work(static_cast<size_t>(size));
  call(work.data(), &size);
  if (result != 0) throw Error(ExitCode::failed, "singular values of a matrix did not converge");
  return values;
}

}  // namespace

double spectral_norm(const Matrix& matrix) {
  if (matrix.values.empty()) return 0;
  if (!std::ranges::all_of(matrix.values, [](double x) { return std::isfinite(x); })) {
    throw Error(ExitCode::data, "a weight is not finite", "finite weights");
  }
  return singular_values_of(matrix)[0];
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

Matrix beside(const Matrix& left, const Matrix& right) {
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

#include "posattn/simulation/singular_values.h"

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

namespace posattn::simulation {
namespace {

// LAPACK's dgesdd. Fortran reads rows as columns, so it sees the
// transposed matrix. Job 'N': values alone; 'S': also `left` [rows, k] and `right` [k, columns].
std::vector<double> lapack_values(const char* job, Matrix matrix, Matrix& left, Matrix& right) {
  blas_info();  // one thread, so that sums have one order
  const int rows = matrix.columns, columns = matrix.rows, less = std::min(rows, columns);
  std::vector<double> values(less);
  if (less == 0) return values;
  std::vector<int> integer_work(8 * static_cast<size_t>(less));
  double best_size = 0;
  const int ask = -1;
  int result = 0;
  const auto call = [&](double* work, const int* size) {
    dgesdd_(job, &rows, &columns, matrix.values.data(), &rows, values.data(), right.values.data(),
            &rows, left.values.data(), &less, work, size, integer_work.data(), &result, 1);
  };
  call(&best_size, &ask);
  const int size = static_cast<int>(best_size);
  std::vector<double> work(static_cast<size_t>(size));
  call(work.data(), &size);
  if (result != 0) throw Error(ExitCode::failed, "singular values of a matrix did not converge");
  return values;
}

// A root of the moments, root root^T = moments, and its inverse from the left, on the directions in
// which there is any data.
struct Root {
  Matrix root, inverse;  // [size, directions]
};

Root root_of(const Matrix& moments) {
  constexpr double nothing = 1e-12;  // of the largest variance
  const SingularValues found = singular_values(moments);
  const auto& variances = found.values;
  int kept = 0;
  while (kept < moments.rows && variances[kept] > nothing * variances[0]) ++kept;
  Root result{some_columns(found.right, 0, kept), some_columns(found.right, 0, kept)};
  for (int r = 0; r < moments.rows; ++r) {
    for (int c = 0; c < kept; ++c) {
      result.root(r, c) *= std::sqrt(variances[c]);
      result.inverse(r, c) /= std::sqrt(variances[c]);
    }
  }
  return result;
}

}  // namespace

SingularValues singular_values(const Matrix& matrix) {
  const int count = std::min(matrix.rows, matrix.columns);
  Matrix left(matrix.rows, count), right(count, matrix.columns);
  std::vector<double> values = lapack_values("S", matrix, left, right);
  return {std::move(left), transposed(right), std::move(values)};
}

double largest_singular_value(const Matrix& matrix) {
  Matrix left, right;
  return lapack_values("N", matrix, left, right)[0];
}

Factors whitened_factors(const Matrix& left_moments, const Matrix& matrix,
                         const Matrix& right_moments) {
  const Root left = root_of(left_moments), right = root_of(right_moments);
  const SingularValues found =
      singular_values(product(product(transposed(left.root), matrix), right.root));
  Factors result{product(left.inverse, found.left), product(right.inverse, found.right),
                 found.values};
  for (size_t k = 0; k < found.values.size(); ++k) {
    const double scale = std::sqrt(found.values[k]);
    const int column = static_cast<int>(k);
    for (int r = 0; r < result.left.rows; ++r) result.left(r, column) *= scale;
    for (int r = 0; r < result.right.rows; ++r) result.right(r, column) *= scale;
  }
  return result;
}

int rank_for(const std::vector<double>& values, double share) {
  share = std::max(share, 1e-9);  // what is less is rounding
  double all = 0, left_out = 0;
  for (const double value : values) all += value * value;
  auto rank = static_cast<int>(values.size());
  while (rank > 0) {
    left_out += values[rank - 1] * values[rank - 1];
    if (left_out > share * share * all) break;
    --rank;
  }
  return rank;
}

}  // namespace posattn::simulation

#include "posattn/simulation/matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/model/spec/tensor_names.h"

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

Matrix identity(int size) {
  Matrix result(size, size);
  for (int i = 0; i < size; ++i) result(i, i) = 1;
  return result;
}

Matrix product(const Matrix& left, const Matrix& right) {
  Matrix result(left.rows, right.columns);
  for (int r = 0; r < left.rows; ++r) {
    for (int k = 0; k < left.columns; ++k) {
      const double factor = left(r, k);
      for (int c = 0; c < right.columns; ++c) result(r, c) += factor * right(k, c);
    }
  }
  return result;
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.columns, matrix.rows);
  for (int r = 0; r < matrix.rows; ++r) {
    for (int c = 0; c < matrix.columns; ++c) result(c, r) = matrix(r, c);
  }
  return result;
}

Matrix some_rows(const Matrix& matrix, int first, int count) {
  Matrix result(count, matrix.columns);
  std::copy_n(matrix.row(first), result.values.size(), result.values.begin());
  return result;
}

Matrix some_columns(const Matrix& matrix, int first, int count) {
  Matrix result(matrix.rows, count);
  for (int r = 0; r < matrix.rows; ++r) std::copy_n(matrix.row(r) + first, count, result.row(r));
  return result;
}

void mask_later(Matrix& scores) {
  for (int i = 0; i < scores.rows; ++i) {
    std::fill(scores.row(i) + i + 1, scores.row(i) + scores.columns,
              -std::numeric_limits<double>::infinity());
  }
}

void softmax(Matrix& scores) {
  for (int i = 0; i < scores.rows; ++i) {
    double* row = scores.row(i);
    const double greatest = *std::max_element(row, row + scores.columns);
    double sum = 0;
    for (int j = 0; j < scores.columns; ++j) sum += row[j] = std::exp(row[j] - greatest);
    for (int j = 0; j < scores.columns; ++j) row[j] /= sum;
  }
}

std::vector<double> product(const Matrix& left, const std::vector<double>& right) {
  std::vector<double> result(left.rows);
  for (int r = 0; r < left.rows; ++r) result[r] = dot(left.row(r), right.data(), right.size());
  return result;
}

double dot(const double* left, const double* right, size_t size) {
  return std::inner_product(left, left + size, right, 0.0);
}

void add(std::vector<double>& to, const std::vector<double>& from, double factor) {
  for (size_t k = 0; k < to.size(); ++k) to[k] += factor * from[k];
}

void AffineMap::apply(const double* x, double* out) const {
  for (int r = 0; r < weight.rows; ++r) {
    out[r] = bias[r] + dot(weight.row(r), x, static_cast<size_t>(weight.columns));
  }
}

AffineMap map_of(const Parameters<double>& parameters, const std::string& name, int in) {
  const auto weight = parameters[names::weight(name)], bias = parameters[names::bias(name)];
  AffineMap map{Matrix(static_cast<int>(bias.size()), in), {bias.begin(), bias.end()}};
  std::ranges::copy(weight, map.weight.values.begin());
  return map;
}

AffineMap encoder_of(const ModelSpec& spec, const Parameters<double>& parameters) {
  AffineMap stored = map_of(parameters, std::string(names::encoding), spec.input_size());
  if (!spec.positions_in_input) return stored;
  const int columns = spec.data_columns;
  Matrix positions(spec.nodes(), spec.encoding_size);
  positions.values = positions_of(spec, parameters);
  const Matrix places =
      product(some_columns(stored.weight, columns, spec.encoding_size), transposed(positions));
  AffineMap encoder{Matrix(spec.width, columns + spec.nodes()), stored.bias};
  for (int r = 0; r < spec.width; ++r) {
    std::copy_n(stored.weight.row(r), columns, encoder.weight.row(r));
    std::copy_n(places.row(r), spec.nodes(), encoder.weight.row(r) + columns);
  }
  return encoder;
}

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

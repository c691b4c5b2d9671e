// Small dense matrices in double, for what is done once for each model.
#pragma once

#include <cstddef>

#include "posattn/model/spec/parameters.h"

namespace posattn::simulation {

struct Matrix {
  int rows = 0, columns = 0;
  std::vector<double> values;  // row after row

  Matrix() = default;
  Matrix(int row_count, int column_count)
      : rows(row_count),
        columns(column_count),
        values(static_cast<size_t>(row_count) * static_cast<size_t>(column_count)) {}

  double* row(int r) { return values.data() + static_cast<size_t>(r) * columns; }
  const double* row(int r) const { return values.data() + static_cast<size_t>(r) * columns; }
  double& operator()(int r, int c) { return row(r)[c]; }
  double operator()(int r, int c) const { return row(r)[c]; }
};

Matrix identity(int size);
Matrix product(const Matrix& left, const Matrix& right);
Matrix transposed(const Matrix& matrix);
// Rows [first, first + count), all columns; and the same of columns.
Matrix some_rows(const Matrix& matrix, int first, int count);
Matrix some_columns(const Matrix& matrix, int first, int count);

// A causal mask: minus infinity where the column is greater than the row.
void mask_later(Matrix& scores);
// Applies softmax to each row.
void softmax(Matrix& scores);

std::vector<double> product(const Matrix& left, const std::vector<double>& right);
double dot(const double* left, const double* right, size_t size);
// to += factor from
void add(std::vector<double>& to, const std::vector<double>& from, double factor = 1);

// weight x + bias, weight [out, in].
struct AffineMap {
  Matrix weight;
  std::vector<double> bias;

  void apply(const double* x, double* out) const;
};

// The linear map `name` with its bias, which reads vectors of size `in`.
AffineMap map_of(const Parameters<double>& parameters, const std::string& name, int in);

// The encoder. Where positions are part of the input, the map reads [data | the node's one-hot row]
// instead: any encoding of positions is linear in these rows.
AffineMap encoder_of(const ModelSpec& spec, const Parameters<double>& parameters);

// Singular values by LAPACK (dgesdd of OpenBLAS), and what they say of ranks.

// matrix = left diag(values) right^T, values in falling order; left [rows, k], right [columns, k]
// with orthonormal columns, k = min(rows, columns). Throws Error(failed) where
// an entry is not finite.
struct SingularValues {
  Matrix left, right;
  std::vector<double> values;
};
SingularValues singular_values(const Matrix& matrix);
double largest_singular_value(const Matrix& matrix);  // of a matrix with entries

// matrix = sum over r of left_r right_r^T, the columns of `left` and `right`, in such an order and
// scale that leaving out the last ones leaves the form x^T matrix y with the least mean square
// error, where x and y are independent with the second moments given.
struct Factors {
  Matrix left, right;
  std::vector<double> values;  // root mean square of each term
};
Factors whitened_factors(const Matrix& left_moments, const Matrix& matrix,
                         const Matrix& right_moments);

// The least rank that leaves out no more than `share` of the root mean square of all terms, and no
// rounding in any case.
int rank_for(const std::vector<double>& values, double share);

}  // namespace posattn::simulation

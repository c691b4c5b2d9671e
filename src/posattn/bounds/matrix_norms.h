// Norms of matrices.
#pragma once

#include <vector>

#include "posattn/simulation/matrix.h"

namespace posattn::bounds {

using simulation::Matrix;

// The largest singular value; 0 without entries. Throws Error(data) where an entry is not finite.
double spectral_norm(const Matrix& matrix);

double frobenius_norm(const Matrix& matrix);
// ||W||_{2,1}: the sum of the lengths of the rows, which are outputs.
double two_one_norm(const Matrix& matrix);

double length_of(const std::vector<double>& vector);

// All three, as tables show them.
struct MatrixNorms {
  double spectral = 0, two_one = 0, frobenius = 0;
};
MatrixNorms norms_of(const Matrix& matrix);

// The matrix [left | right], and the matrix with one row more.
Matrix with_columns(const Matrix& left, const Matrix& right);
Matrix with_row(const Matrix& matrix, const std::vector<double>& row);

}  // namespace posattn::bounds

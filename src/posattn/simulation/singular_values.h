// Singular values by LAPACK (dgesdd of OpenBLAS), and what they say of ranks.
#pragma once

#include <vector>

#include "posattn/simulation/matrix.h"

namespace posattn::simulation {

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

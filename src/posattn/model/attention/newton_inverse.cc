// The gradient, iteration by iteration backwards, with T1 = 7 I - P, T2 = 15 I - P T1, T3 = 13 I -
// P T2 and Z' = Z T3 / 4:
//   dT3 = Z^T dZ' / 4,  dT2 = -P^T dT3,  dT1 = -P^T dT2,  dP = -dT3 T2^T - dT2 T1^T - dT1,
//   dG += dP Z^T,  dZ = dZ' T3^T / 4 + G^T dP
// and of Z_0 = c G^T, c = 1 / (sum of column j), j the column of the largest sum:
//   dG += c dZ_0^T,  dG_ij -= c^2 <dZ_0, G^T> for all i
#include "posattn/model/attention/low_rank.h"

namespace posattn {
namespace {

constexpr int newton_iterations = 6;

using Square = Matrix<double>;

Square multiple_of_identity(int64_t m, double factor) {
  Square result{m, m};
  for (int64_t i = 0; i < m; ++i) result.numbers[i * (m + 1)] = factor;
  return result;
}

void subtract_from(Square& x, const Square& y) {
  for (size_t i = 0; i < x.numbers.size(); ++i) x.numbers[i] -= y.numbers[i];
}

struct NewtonStep {
  NewtonStep(const Square& g, const Square& z)
      : p(product_of(1, g, z)),
        t1(multiple_of_identity(g.rows, 7)),
        t2(multiple_of_identity(g.rows, 15)),
        t3(multiple_of_identity(g.rows, 13)) {
    subtract_from(t1, p);
    add_product(-1, p, t1, t2);
    add_product(-1, p, t2, t3);
  }
  Square p, t1, t2, t3;
};

std::pair<int64_t, double> largest_column(const Square& g) {
  std::pair<int64_t, double> largest = {0, 0};
  for (int64_t j = 0; j < g.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < g.rows; ++i) sum += g.numbers[i * g.columns + j];
    if (sum > largest.second) largest = {j, sum};
  }
  return largest;
}

// Z_0 and what each iteration makes of it.
std::vector<Square> newton_iterates(const Square& g) {
  const double start = 1 / largest_column(g).second;
  std::vector<Square> z = {product_of(start, g, multiple_of_identity(g.rows, 1), Transposed::left)};
  for (int k = 0; k < newton_iterations; ++k) {
    z.push_back(product_of(0.25, z.back(), NewtonStep(g, z.back()).t3));
  }
  return z;
}

}  // namespace

Matrix<double> newton_inverse(const Matrix<double>& g) { return newton_iterates(g).back(); }

Matrix<double> newton_inverse_gradient(const Matrix<double>& g, Matrix<double> dz) {
  constexpr Transposed left = Transposed::left, right = Transposed::right;
  const std::vector<Square> iterates = newton_iterates(g);
  const int64_t m = g.rows;
  Square dg{m, m};
  for (int k = newton_iterations - 1; k >= 0; --k) {
    const NewtonStep step(g, iterates[k]);
    const Square dt3 = product_of(0.25, iterates[k], dz, left),
                 dt2 = product_of(-1, step.p, dt3, left), dt1 = product_of(-1, step.p, dt2, left);
    Square dp = product_of(-1, dt3, step.t2, right);
    add_product(-1, dt2, step.t1, dp, right);
    subtract_from(dp, dt1);
    add_product(1, dp, iterates[k], dg, right);
    dz = product_of(0.25, dz, step.t3, right);
    add_product(1, g, dp, dz, left);
  }
  const auto [column, sum] = largest_column(g);
  double along = 0;
  for (int64_t i = 0; i < m * m; ++i) {
    const double d = dz.numbers[i % m * m + i / m];
    dg.numbers[i] += d / sum;
    along += d * g.numbers[i];
  }
  for (int64_t i = 0; i < m; ++i) dg.numbers[i * m + column] -= along / (sum * sum);
  return dg;
}

}  // namespace posattn

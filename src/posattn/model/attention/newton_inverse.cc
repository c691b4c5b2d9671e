// The gradient, iteration by iteration backwards, with T1 = 7 I - P, T2 = 15 I - P T1, T3 = 13 I -
// P T2 and Z' = Z T3 / 4:
//   dT3 = Z^T dZ' / 4,  dT2 = -P^T dT3,  dT1 = -P^T dT2,  dP = -dT3 T2^T - dT2 T1^T - dT1,
//   dG += dP Z^T,  dZ = dZ' T3^T / 4 + G^T dP
// and of Z_0 = c G^T, c = 1 / (sum of column j), j the column of the largest sum:
//   dG += c dZ_0^T,  dG_ij -= c^2 <dZ_0, G^T> for all i
//
// A step of training inverts thousands of matrices of a few rows. So all numbers of an inverse lie
// in one vector, and products of the usual sizes have loops of constant length.
#include "posattn/model/attention/low_rank.h"

namespace posattn {
namespace {

constexpr int64_t iterations = 6, kept = 5;  // by iteration: Z, P, T1, T2, T3

// C = A B. A size that the compiler knows keeps a row of C in registers.
template <int64_t m>
void multiply_rows(int64_t, const double* a, const double* b, double* c) {
  for (int64_t i = 0; i < m; ++i) {
    double row[m] = {};
#pragma GCC unroll 8
    for (int64_t k = 0; k < m; ++k) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < m; ++j) row[j] += a[i * m + k] * b[k * m + j];
    }
    std::copy_n(row, m, c + i * m);
  }
}
template <>
void multiply_rows<0>(int64_t m, const double* a, const double* b, double* c) {
  std::fill_n(c, m * m, 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t j = 0; j < m; ++j) c[i * m + j] += a[i * m + k] * b[k * m + j];
    }
  }
}

void multiply(int64_t m, const double* a, const double* b, double* c) {
  const auto rows = m == 4 ? multiply_rows<4> : m == 8 ? multiply_rows<8> : multiply_rows<0>;
  rows(m, a, b, c);
}

void transpose(int64_t m, const double* a, double* result) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) result[j * m + i] = a[i * m + j];
  }
}

std::pair<int64_t, double> largest_column(const Matrix<double>& g) {
  std::pair<int64_t, double> largest = {0, 0};
  for (int64_t j = 0; j < g.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < g.rows; ++i) sum += g.numbers[i * g.columns + j];
    if (sum > largest.second) largest = {j, sum};
  }
  return largest;
}

}  // namespace

NewtonInverse::NewtonInverse(Matrix<double> g)
    : m_(g.rows), g_(std::move(g)), numbers_((iterations * kept + 1) * m_ * m_) {
  const int64_t size = m_ * m_;
  double* z = numbers_.data();
  transpose(m_, g_.numbers.data(), z);
  const double start = 1 / largest_column(g_).second;
  for (int64_t i = 0; i < size; ++i) z[i] *= start;
  for (int k = 0; k < iterations; ++k, z += kept * size) {
    double* p = z + size;
    multiply(m_, g_.numbers.data(), z, p);
    // T1 = 7 I - P, then T = factor I - P (the one before).
    double* t = p + size;
    for (int64_t i = 0; i < size; ++i) t[i] = -p[i];
    for (const double factor : {7.0, 15.0, 13.0}) {
      for (int64_t i = 0; i < m_; ++i) t[i * (m_ + 1)] += factor;
      if (factor == 13) break;
      multiply(m_, p, t, t + size);
      t += size;
      for (int64_t i = 0; i < size; ++i) t[i] = -t[i];
    }
    double* next = z + kept * size;
    multiply(m_, z, t, next);
    for (int64_t i = 0; i < size; ++i) next[i] *= 0.25;
  }
}

std::span<const double> NewtonInverse::value() const {
  return std::span(numbers_).subspan(iterations * kept * m_ * m_);
}

Matrix<double> NewtonInverse::gradient(Matrix<double> dz) const {
  const int64_t m = m_, size = m * m;
  Matrix<double> dg{m, m};
  std::vector<double> buffer(7 * size);
  double* transposed = buffer.data();
  double *dt3 = transposed + size, *dt2 = dt3 + size, *dt1 = dt2 + size, *dp = dt1 + size,
         *product = dp + size, *transposed_g = product + size;
  transpose(m, g_.numbers.data(), transposed_g);
  for (int64_t k = iterations - 1; k >= 0; --k) {
    const double *z = &numbers_[k * kept * size], *p = z + size, *t1 = p + size, *t2 = t1 + size,
                 *t3 = t2 + size;
    transpose(m, z, transposed);
    multiply(m, transposed, dz.numbers.data(), dt3);
    for (int64_t i = 0; i < size; ++i) dt3[i] *= 0.25;
    transpose(m, p, transposed);
    multiply(m, transposed, dt3, dt2);
    for (int64_t i = 0; i < size; ++i) dt2[i] = -dt2[i];
    multiply(m, transposed, dt2, dt1);  // -dT1
    transpose(m, t2, transposed);
    multiply(m, dt3, transposed, dp);
    transpose(m, t1, transposed);
    multiply(m, dt2, transposed, product);
    for (int64_t i = 0; i < size; ++i) dp[i] = -dp[i] - product[i] + dt1[i];
    transpose(m, z, transposed);
    multiply(m, dp, transposed, product);
    for (int64_t i = 0; i < size; ++i) dg.numbers[i] += product[i];
    transpose(m, t3, transposed);
    multiply(m, dz.numbers.data(), transposed, product);
    multiply(m, transposed_g, dp, dz.numbers.data());
    for (int64_t i = 0; i < size; ++i) dz.numbers[i] += 0.25 * product[i];
  }
  const auto [column, sum] = largest_column(g_);
  double along = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double d = dz.numbers[i % m * m + i / m];
    dg.numbers[i] += d / sum;
    along += d * g_.numbers[i];
  }
  for (int64_t i = 0; i < m; ++i) dg.numbers[i * m + column] -= along / (sum * sum);
  return dg;
}

}  // namespace posattn

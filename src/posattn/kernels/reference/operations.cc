#include "posattn/kernels/reference/operations.h"

#include <algorithm>
#include <cmath>

namespace posattn::reference {

void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
            const double* bias, double* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias ? bias[o] : 0.0;
      for (int64_t i = 0; i < in; ++i) sum += x[r * in + i] * weight[o * in + i];
      y[r * out + o] = sum;
    }
  }
}

void linear_gradient(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
                     const double* dy, double* dx, double* dweight, double* dbias) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      const double g = dy[r * out + o];
      if (dbias) dbias[o] += g;
      for (int64_t i = 0; i < in; ++i) {
        if (dx) dx[r * in + i] += g * weight[o * in + i];
        if (dweight) dweight[o * in + i] += g * x[r * in + i];
      }
    }
  }
}

void softmax_rows(int64_t rows, int64_t columns, double* x) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    const double largest = *std::max_element(x, x + columns);
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += x[c] = std::exp(x[c] - largest);
    for (int64_t c = 0; c < columns; ++c) x[c] /= sum;
  }
}

void softmax_rows_gradient(int64_t rows, int64_t columns, const double* a, double* da) {
  for (int64_t r = 0; r < rows; ++r, a += columns, da += columns) {
    double dot = 0;
    for (int64_t c = 0; c < columns; ++c) dot += a[c] * da[c];
    for (int64_t c = 0; c < columns; ++c) da[c] = a[c] * (da[c] - dot);
  }
}

void relu(int64_t count, double* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0.0 : x[i];  // keeps a NaN
}

void relu_gradient(int64_t count, const double* y, double* dy) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(y[i] > 0)) dy[i] = 0;
  }
}

void product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha,
             const double* a, int64_t lda, const double* b, int64_t ldb, bool accumulate, double* c,
             int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += (transpose_a ? a[p * lda + i] : a[i * lda + p]) *
               (transpose_b ? b[j * ldb + p] : b[p * ldb + j]);
      }
      c[i * ldc + j] = (accumulate ? c[i * ldc + j] : 0.0) + alpha * sum;
    }
  }
}

void rotate(int64_t size, double position, int sign, double* x) {
  for (int64_t i = 0; i + 1 < size; i += 2) {
    const double angle =
        sign * position * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(size));
    const double c = std::cos(angle), s = std::sin(angle);
    const double first = x[i], second = x[i + 1];
    x[i] = first * c - second * s;
    x[i + 1] = first * s + second * c;
  }
}

}  // namespace posattn::reference

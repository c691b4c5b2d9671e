// Products and softmax of the block executor in both precisions: double loops for the reference,
// OpenBLAS and the tile kernels for float.
#pragma once

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn::generic {

// C [m, n] = or += alpha op(A) op(B).
inline void product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                    bool accumulate, double* c, int64_t ldc) {
  reference::product(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, accumulate, c, ldc);
}
inline void product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                    bool accumulate, float* c, int64_t ldc) {
  gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, accumulate ? 1.0f : 0.0f, c, ldc);
}

inline void softmax_rows(int64_t rows, int64_t columns, double* x,
                         const TileKernels& = tile_kernels()) {
  reference::softmax_rows(rows, columns, x);
}
inline void softmax_rows(int64_t rows, int64_t columns, float* x,
                         const TileKernels& kernels = tile_kernels()) {
  kernels.softmax_rows(rows, columns, columns, x);
}
inline void softmax_rows_gradient(int64_t rows, int64_t columns, const double* a, double* da,
                                  const TileKernels& = tile_kernels()) {
  reference::softmax_rows_gradient(rows, columns, a, da);
}
inline void softmax_rows_gradient(int64_t rows, int64_t columns, const float* a, float* da,
                                  const TileKernels& kernels = tile_kernels()) {
  kernels.softmax_rows_gradient(rows, columns, columns, a, da);
}

// y = exp(x); y may be x.
inline void exponential(int64_t count, const double* x, double* y,
                        const TileKernels& = tile_kernels()) {
  for (int64_t i = 0; i < count; ++i) y[i] = std::exp(x[i]);
}
inline void exponential(int64_t count, const float* x, float* y,
                        const TileKernels& kernels = tile_kernels()) {
  kernels.exponential(count, x, y);
}

// C [m, n] = or += A B, A(i, p) = a[i row_stride + p inner_stride]: rows of A may overlap.
inline void strided_product(int64_t m, int64_t n, int64_t k, const double* a, int64_t row_stride,
                            int64_t inner_stride, const double* b, bool accumulate, double* c) {
  if (!accumulate) std::fill_n(c, m * n, 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const double factor = a[i * row_stride + p * inner_stride];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[p * n + j];
    }
  }
}
inline void strided_product(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
                            int64_t inner_stride, const float* b, bool accumulate, float* c) {
  tile_kernels().product(m, n, k, a, row_stride, inner_stride, b, n, c, n,
                         accumulate ? Store::add : Store::assign, nullptr);
}

}  // namespace posattn::generic

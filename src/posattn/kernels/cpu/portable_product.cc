#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/tensor/buffer.h"

namespace posattn {
namespace {

template <class T>
void scale_matrix(int64_t m, int64_t n, T factor, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = factor == 0 ? T{0} : factor * c[i * ldc + j];
  }
}

// Blocks of a product in float. The kernel goes over a block of B for all rows of a block of A, so
// B's is to fit into the first-level cache and A's into the second. Copied rows start an odd number
// of cache lines apart, as rows 4 KB apart would all fall into the same few places of a cache.
constexpr int64_t block_depth = 96, block_rows = 192, block_columns = 64;
constexpr int64_t copied_depth = 112, copied_columns = 80;

// op(A) or op(B) of one block, as the kernel reads it: where it is, or a copy.
struct LeftBlock {
  const float* data;
  int64_t row_stride, inner_stride;
};
struct RightBlock {
  const float* data;
  int64_t stride;
};

LeftBlock left_block(bool transpose, int64_t rows, int64_t depth, const float* a, int64_t lda,
                     bool copies, Buffer<float>& copy) {
  if (!transpose) return {a, lda, 1};
  if (!copies) return {a, 1, lda};
  copy.resize(rows * copied_depth);
  tile_kernels().transpose(depth, rows, a, lda, copy.data(), copied_depth);
  return {copy.data(), copied_depth, 1};
}

RightBlock right_block(bool transpose, int64_t depth, int64_t columns, float alpha, const float* b,
                       int64_t ldb, bool copies, Buffer<float>& copy) {
  if (!transpose && alpha == 1 && !copies) return {b, ldb};
  copy.resize(depth * copied_columns);
  if (transpose) {
    tile_kernels().transpose(columns, depth, b, ldb, copy.data(), copied_columns);
  } else {
    for (int64_t p = 0; p < depth; ++p) {
      std::copy_n(b + p * ldb, columns, &copy[p * copied_columns]);
    }
  }
  if (alpha != 1) {
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t j = 0; j < columns; ++j) copy[p * copied_columns + j] *= alpha;
    }
  }
  return {copy.data(), copied_columns};
}

}  // namespace

void portable_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == 0) return scale_matrix(m, n, beta, c, ldc);
  if (beta != 0 && beta != 1) scale_matrix(m, n, beta, c, ldc);
  // A copy takes as long as a few rows or columns of the product: not of what lies close together.
  constexpr int64_t far = 256;
  const bool copies_left = n >= block_columns && lda > far;
  const bool copies_right = m >= block_columns && ldb > far;
  Buffer<float> left_copy, right_copy;
  for (int64_t p = 0; p < k; p += block_depth) {
    const int64_t depth = std::min(block_depth, k - p);
    const Store store = p == 0 && beta == 0 ? Store::assign : Store::add;
    for (int64_t i = 0; i < m; i += block_rows) {
      const int64_t rows = std::min(block_rows, m - i);
      const LeftBlock left =
          left_block(transpose_a, rows, depth, transpose_a ? a + p * lda + i : a + i * lda + p, lda,
                     copies_left, left_copy);
      for (int64_t j = 0; j < n; j += block_columns) {
        const int64_t columns = std::min(block_columns, n - j);
        const RightBlock right = right_block(transpose_b, depth, columns, alpha,
                                             transpose_b ? b + j * ldb + p : b + p * ldb + j, ldb,
                                             copies_right, right_copy);
        tile_kernels().product(rows, columns, depth, left.data, left.row_stride, left.inner_stride,
                               right.data, right.stride, c + i * ldc + j, ldc, store, nullptr);
      }
    }
  }
}

void portable_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                   double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                   double beta, double* c, int64_t ldc) {
  if (beta != 1) scale_matrix(m, n, beta, c, ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const double factor = alpha * (transpose_a ? a[p * lda + i] : a[i * lda + p]);
      for (int64_t j = 0; j < n; ++j) {
        c[i * ldc + j] += factor * (transpose_b ? b[j * ldb + p] : b[p * ldb + j]);
      }
    }
  }
}

}  // namespace posattn

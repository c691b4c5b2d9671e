#include "posattn/kernels/cpu/portable_product.h"

#include <algorithm>

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

}  // namespace

void portable_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == 0) return scale_matrix(m, n, beta, c, ldc);
  // The kernel wants B as it is, and knows no alpha: alpha B is packed where it is not B.
  Buffer<float> packed;
  if (transpose_b || alpha != 1) {
    packed.resize(k * n);
    if (transpose_b) {
      tile_kernels().transpose(n, k, b, ldb, packed.data(), n);
    } else {
      for (int64_t p = 0; p < k; ++p) std::copy_n(b + p * ldb, n, &packed[p * n]);
    }
    if (alpha != 1) {
      for (float& value : packed) value *= alpha;
    }
    b = packed.data();
    ldb = n;
  }
  if (beta != 0 && beta != 1) scale_matrix(m, n, beta, c, ldc);
  tile_kernels().product(m, n, k, a, transpose_a ? 1 : lda, transpose_a ? lda : 1, b, ldb, c, ldc,
                         beta == 0 ? Store::assign : Store::add, nullptr);
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

// Large matrix products, by OpenBLAS on the calling thread (our threads are outside), or our own
// (portable_gemm): where OpenBLAS has no kernels for this processor, or does not exist.
#pragma once

#include <cstdint>
#include <string>

namespace posattn {

// C [m, n] = alpha op(A) op(B) + beta C, row-major.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
          int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc);

struct BlasInfo {
  std::string configuration, kernel, variant;
  std::string products;  // in float: by "OpenBLAS", or by our "own" kernels
};
// Throws Error(device) when the library found at run time is the serial variant: it has the same
// file name, is not thread-safe, and would return wrong products when called from several threads.
const BlasInfo& blas_info();

// The same products without a library: those in float on the tile kernels, those in double by
// plain loops. WebAssembly has nothing else. Elsewhere those in float stand in where OpenBLAS does
// not know the processor (blas.cc), and POSATTN_PRODUCTS=portable asks for both, so that a run can
// be compared with one in a browser to the last bit.

// C [m, n] = alpha op(A) op(B) + beta C, row-major; with beta 0 what C held does not matter.
void portable_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc);
void portable_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                   double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                   double beta, double* c, int64_t ldc);

}  // namespace posattn

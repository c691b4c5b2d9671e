#include "posattn/kernels/cpu/blas.h"

#include <cblas.h>

#include <cstdlib>
#include <string_view>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/portable_product.h"

namespace posattn {
namespace {

CBLAS_TRANSPOSE operation(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

bool portable_products() {
  static const bool wanted = [] {
    const char* said = std::getenv("POSATTN_PRODUCTS");
    const std::string_view name = said == nullptr ? "openblas" : said;
    if (name != "openblas" && name != "portable") {
      throw Error(ExitCode::usage, "POSATTN_PRODUCTS asks for '" + std::string(name) + "'",
                  "openblas or portable");
    }
    return name == "portable";
  }();
  return wanted;
}

}  // namespace

const BlasInfo& blas_info() {
  static const BlasInfo info = [] {
    if (portable_products()) return BlasInfo{"none", "tile kernels", "portable"};
    const int parallel = openblas_get_parallel();
    if (parallel == 0) {
      throw Error(ExitCode::device, "the OpenBLAS found at run time is the serial variant",
                  "a thread-safe variant (pthread or OpenMP)",
                  "install libopenblas0-pthread and remove libopenblas0-serial");
    }
    openblas_set_num_threads(1);
    return BlasInfo{openblas_get_config(), openblas_get_corename(),
                    parallel == 1 ? "pthread" : "openmp"};
  }();
  return info;
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
          int64_t ldc) {
  if (portable_products()) {
    return portable_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  blas_info();
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor, operation(transpose_a), operation(transpose_b), static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
              static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha,
          const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
          int64_t ldc) {
  if (portable_products()) {
    return portable_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  blas_info();
  if (m == 0 || n == 0) return;
  cblas_dgemm(CblasRowMajor, operation(transpose_a), operation(transpose_b), static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
              static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

}  // namespace posattn

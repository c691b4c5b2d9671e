#include "posattn/kernels/cpu/blas.h"

#include <cblas.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn {
namespace {

CBLAS_TRANSPOSE operation(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

enum class Products { openblas, own_in_float, portable };

// The kernels of OpenBLAS that know no AVX2. An OpenBLAS that is older than the processor takes
// them too: 0.3.21 of Debian 12 does on Intel's Emerald Rapids, where they have a third of its
// speed.
bool kernels_without_avx2(std::string_view core) {
  constexpr std::string_view old[] = {
      "Prescott", "Core2",   "Penryn",    "Dunnington",   "Nehalem",   "Sandybridge", "Atom",
      "Athlon",   "Opteron", "Barcelona", "Opteron_SSE3", "Bobcat",    "Bulldozer",   "Piledriver",
      "Nano",     "Katmai",  "Banias",    "Coppermine",   "Northwood", "Steamroller", "Excavator"};
  return std::ranges::find(old, core) != std::end(old);
}

Products products_used() {
  static const Products used = [] {
    if (const char* said = std::getenv("POSATTN_PRODUCTS")) {
      const std::string_view name = said;
      if (name == "openblas") return Products::openblas;
      if (name == "portable") return Products::portable;
      throw Error(ExitCode::usage, "POSATTN_PRODUCTS asks for '" + std::string(name) + "'",
                  "openblas or portable");
    }
    const bool ours_are_wider = tile_kernels().lanes >= 8;
    return ours_are_wider && kernels_without_avx2(openblas_get_corename()) ? Products::own_in_float
                                                                           : Products::openblas;
  }();
  return used;
}

}  // namespace

const BlasInfo& blas_info() {
  static const BlasInfo info = [] {
    openblas_set_num_threads(1);
    if (products_used() == Products::portable) {
      return BlasInfo{"none", "tile kernels", "portable", "own"};
    }
    const int parallel = openblas_get_parallel();
    if (parallel == 0) {
      throw Error(ExitCode::device, "the OpenBLAS found at run time is the serial variant",
                  "a thread-safe variant (pthread or OpenMP)",
                  "install libopenblas0-pthread and remove libopenblas0-serial");
    }
    return BlasInfo{openblas_get_config(), openblas_get_corename(),
                    parallel == 1 ? "pthread" : "openmp",
                    products_used() == Products::openblas ? "OpenBLAS" : "own"};
  }();
  return info;
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
          int64_t ldc) {
  if (products_used() != Products::openblas) {
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
  if (products_used() == Products::portable) {
    return portable_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  blas_info();
  if (m == 0 || n == 0) return;
  cblas_dgemm(CblasRowMajor, operation(transpose_a), operation(transpose_b), static_cast<int>(m),
              static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
              static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

}  // namespace posattn

#include "posattn/kernels/plain/linear.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn::plain {

void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
            const double*, const double* bias, double* y, const TileKernels&) {
  reference::linear(rows, in, out, x, weight, bias, y);
}

void linear_gradient(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
                     const double* dy, double* dweight, double* dbias, bool accumulate, double* dx,
                     const TileKernels&) {
  if (dx && !accumulate) std::fill_n(dx, rows * in, 0.0);
  reference::linear_gradient(rows, in, out, x, weight, dy, dx, dweight, dbias);
}

void linear(int64_t rows, int64_t in, int64_t out, const float* x, const float* weight,
            const float* transposed, const float* bias, float* y, const TileKernels& kernels) {
  if (in * out <= most_tile_weight) {
    return kernels.product(rows, out, in, x, in, 1, transposed, out, y, out,
                           bias ? Store::bias : Store::assign, bias);
  }
  for (int64_t r = 0; bias && r < rows; ++r) std::copy_n(bias, out, y + r * out);
  gemm(false, true, rows, out, in, 1, x, in, weight, in, bias ? 1.0f : 0.0f, y, out);
}

void linear_gradient(int64_t rows, int64_t in, int64_t out, const float* x, const float* weight,
                     const float* dy, float* dweight, float* dbias, bool accumulate, float* dx,
                     const TileKernels& kernels) {
  if (dbias) kernels.column_sums(rows, out, dy, out, dbias);
  if (in * out <= most_tile_weight) {
    kernels.product(out, in, rows, dy, 1, out, x, in, dweight, in, Store::add, nullptr);
    if (!dx) return;
    return kernels.product(rows, in, out, dy, out, 1, weight, in, dx, in,
                           accumulate ? Store::add : Store::assign, nullptr);
  }
  gemm(true, false, out, in, rows, 1, dy, out, x, in, 1, dweight, in);
  if (dx) gemm(false, false, rows, in, out, 1, dy, out, weight, in, accumulate, dx, in);
}

}  // namespace posattn::plain

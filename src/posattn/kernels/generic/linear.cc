#include "posattn/kernels/generic/linear.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn::generic {

void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
            const double*, const double* bias, double* y, const TileKernels&) {
  reference::linear(rows, in, out, x, weight, bias, y);
}

void linear_input_gradient(int64_t rows, int64_t in, int64_t out, const double* weight,
                           const double* dy, bool accumulate, double* dx, const TileKernels&) {
  reference::product(false, false, rows, in, out, 1, dy, out, weight, in, accumulate, dx, in);
}

void linear_weight_gradient(int64_t rows, int64_t in, int64_t out, const double* x,
                            const double* dy, double* dweight, double* dbias, const TileKernels&) {
  reference::linear_gradient(rows, in, out, x, nullptr, dy, nullptr, dweight, dbias);
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

void linear_input_gradient(int64_t rows, int64_t in, int64_t out, const float* weight,
                           const float* dy, bool accumulate, float* dx,
                           const TileKernels& kernels) {
  if (in * out <= most_tile_weight) {
    return kernels.product(rows, in, out, dy, out, 1, weight, in, dx, in,
                           accumulate ? Store::add : Store::assign, nullptr);
  }
  gemm(false, false, rows, in, out, 1, dy, out, weight, in, accumulate ? 1.0f : 0.0f, dx, in);
}

void linear_weight_gradient(int64_t rows, int64_t in, int64_t out, const float* x, const float* dy,
                            float* dweight, float* dbias, const TileKernels& kernels) {
  if (dbias) kernels.column_sums(rows, out, dy, out, dbias);
  if (in * out <= most_tile_weight) {
    return kernels.product(out, in, rows, dy, 1, out, x, in, dweight, in, Store::add, nullptr);
  }
  gemm(true, false, out, in, rows, 1, dy, out, x, in, 1, dweight, in);
}

}  // namespace posattn::generic

// Linear maps of the block executor in both precisions: plain loops for the reference; for float
// the tile kernels, or OpenBLAS where the weight is large.
#pragma once

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::generic {

// Up to this size a weight and its gradient stay in the second-level cache with the rows, and the
// tile kernel is faster than OpenBLAS, whose panels are copied for every product.
inline constexpr int64_t most_tile_weight = int64_t{1} << 18;

// y = x W^T + b, x [rows, in], W [out, in]; b may be null. `transposed` is W^T, for floats of at
// most most_tile_weight; others do not read it.
void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
            const double* transposed, const double* bias, double* y,
            const TileKernels& = tile_kernels());
void linear(int64_t rows, int64_t in, int64_t out, const float* x, const float* weight,
            const float* transposed, const float* bias, float* y,
            const TileKernels& kernels = tile_kernels());

// dx = or += dy W.
void linear_input_gradient(int64_t rows, int64_t in, int64_t out, const double* weight,
                           const double* dy, bool accumulate, double* dx,
                           const TileKernels& = tile_kernels());
void linear_input_gradient(int64_t rows, int64_t in, int64_t out, const float* weight,
                           const float* dy, bool accumulate, float* dx,
                           const TileKernels& kernels = tile_kernels());

// dW += dy^T x, db += column sums of dy (null: not wanted).
void linear_weight_gradient(int64_t rows, int64_t in, int64_t out, const double* x,
                            const double* dy, double* dweight, double* dbias,
                            const TileKernels& = tile_kernels());
void linear_weight_gradient(int64_t rows, int64_t in, int64_t out, const float* x, const float* dy,
                            float* dweight, float* dbias,
                            const TileKernels& kernels = tile_kernels());

}  // namespace posattn::generic

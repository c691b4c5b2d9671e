// LayerNorm of each row in both precisions: plain loops for the reference, the tile kernels for
// float.
//   y = gain (x - mean) / sqrt(variance + 1e-5) + shift
#pragma once

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::generic {

void layer_norm(int64_t rows, int64_t columns, const double* x, const double* gain,
                const double* shift, double* y, const TileKernels& = tile_kernels());
// dx =, dgain +=, dshift +=
void layer_norm_gradient(int64_t rows, int64_t columns, const double* x, const double* gain,
                         const double* dy, double* dx, double* dgain, double* dshift,
                         const TileKernels& = tile_kernels());

inline void layer_norm(int64_t rows, int64_t columns, const float* x, const float* gain,
                       const float* shift, float* y, const TileKernels& kernels = tile_kernels()) {
  kernels.layer_norm(rows, columns, x, gain, shift, y);
}
inline void layer_norm_gradient(int64_t rows, int64_t columns, const float* x, const float* gain,
                                const float* dy, float* dx, float* dgain, float* dshift,
                                const TileKernels& kernels = tile_kernels()) {
  kernels.layer_norm_gradient(rows, columns, x, gain, dy, dx, dgain, dshift);
}

}  // namespace posattn::generic

// Activations of the block executor in both precisions: plain loops for the reference, the tile
// kernels for float. y = activation of x; its gradient gives dx = dy times the derivative at x, and
// y once more, which then need not be kept. y may be x, dx may be dy.
#pragma once

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::generic {

template <class T>
void relu(int64_t count, const T* x, T* y);
template <class T>
void relu_gradient(int64_t count, const T* x, const T* dy, T* dx, T* y);

// x Phi(x), exact
void gelu(int64_t count, const double* x, double* y, const TileKernels& = tile_kernels());
void gelu_gradient(int64_t count, const double* x, const double* dy, double* dx, double* y,
                   const TileKernels& = tile_kernels());
// its approximation by tanh, as in GPT-2
void gelu_tanh(int64_t count, const double* x, double* y, const TileKernels& = tile_kernels());
void gelu_tanh_gradient(int64_t count, const double* x, const double* dy, double* dx, double* y,
                        const TileKernels& = tile_kernels());

inline void gelu(int64_t count, const float* x, float* y,
                 const TileKernels& kernels = tile_kernels()) {
  kernels.gelu(count, x, y);
}
inline void gelu_gradient(int64_t count, const float* x, const float* dy, float* dx, float* y,
                          const TileKernels& kernels = tile_kernels()) {
  kernels.gelu_gradient(count, x, dy, dx, y);
}
inline void gelu_tanh(int64_t count, const float* x, float* y,
                      const TileKernels& kernels = tile_kernels()) {
  kernels.gelu_tanh(count, x, y);
}
inline void gelu_tanh_gradient(int64_t count, const float* x, const float* dy, float* dx, float* y,
                               const TileKernels& kernels = tile_kernels()) {
  kernels.gelu_tanh_gradient(count, x, dy, dx, y);
}

}  // namespace posattn::generic

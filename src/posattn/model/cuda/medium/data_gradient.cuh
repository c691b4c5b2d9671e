// Gradients of 64 x 64 matrices in layers with attention from data, in registers: a warp has
// sixteen rows by 32 columns of some of them, as gradient.cuh says why.
#pragma once

#include "posattn/model/cuda/medium/data_tile.cuh"

namespace posattn::cuda::medium {

// A part of Y^T X over the rows of tiles; of 64 x 64 there are eight.
struct GradientPart {
  static constexpr int count = 8;
  float sum[2][2][4] = {};

  template <int rows = data_rows, int y_stride = stride>
  __device__ void add(const Half* y, const Half* x, float factor, int part, int lane) {
    const Half* a = y + part / 2 * 16 + turned(lane, y_stride);
    const Half* b = x + part % 2 * 32;
    float c[2][2][4] = {};
#pragma unroll 3
    for (int k = 0; k < rows; k += 16) {
      add_mixed(c, load_halves<true>(a + k * y_stride), b + k * stride, lane);
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) add_scaled(sum[pair], c[pair], factor);
  }
  __device__ void store(float* to, int part, int lane) const {
    float* place = to + (part / 2 * 16 + (lane >> 2)) * columns + part % 2 * 32 + 2 * (lane & 3);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float(&x)[4] = sum[pair][n];
        float* there = place + 16 * pair + 8 * n;
        *reinterpret_cast<float2*>(there) = make_float2(x[0], x[1]);
        *reinterpret_cast<float2*>(there + 8 * columns) = make_float2(x[2], x[3]);
      }
    }
  }
};

}  // namespace posattn::cuda::medium

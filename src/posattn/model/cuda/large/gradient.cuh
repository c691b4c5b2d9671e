// Gradients of weights: sums over a tile's rows on the tensor core, added tile by tile to the
// group's place in global memory. The tensor core truncates when it adds, so its sums start at zero
// in every tile.
#pragma once

#include "posattn/model/cuda/large/tile.cuh"

namespace posattn::cuda::large {

// A warp's share of a gradient: 32 columns of x with 16 of y.
struct GradientShare {
  float* gradient;
  int rows, columns;  // of the gradient
  bool first;         // the first tile of a group writes, the later ones add

  // old = what the tile's sums c(m, n) .. are added to: c[0], c[1] of row m, c[2], c[3] of m + 8.
  template <bool transposed>
  __device__ void load(float (&old)[4], int m, int n) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) old[e] = 0;
    if (first) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = m + 8 * half;
      if (!transposed && columns % 2 == 0) {
        if (row < rows && n < columns) {
          const float2 pair = load2(gradient + row * columns + n);
          old[2 * half] = pair.x;
          old[2 * half + 1] = pair.y;
        }
      } else {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (row < rows && n + e < columns) {
            old[2 * half + e] = gradient[transposed ? (n + e) * rows + row : row * columns + n + e];
          }
        }
      }
    }
  }
  template <bool transposed>
  __device__ void store(const float (&old)[4], const float (&c)[4], int m, int n) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = m + 8 * half;
      if (row >= rows) continue;
      const float x = old[2 * half] + c[2 * half], y = old[2 * half + 1] + c[2 * half + 1];
      if (!transposed) {
        store_pair(gradient + row * columns, n, columns, x, y);
      } else {
        if (n < columns) gradient[n * rows + row] = x;
        if (n + 1 < columns) gradient[(n + 1) * rows + row] = y;
      }
    }
  }
};

// gradient [x_columns, y_columns] += x^T y over the tile's rows (transposed: stored as its
// transpose, [y_columns, x_columns]); sums [x_columns] += the column sums of x, where it is given.
template <bool exact, bool transposed, int tiles>
__device__ inline void add_gradient(float* gradient, float* sums, const float* x, int x_columns,
                                    const float* y, int y_columns, const Tile<tiles>& shape,
                                    bool first, int warp, int lane) {
  const int g = lane >> 2, t = lane & 3;
  const GradientShare share = {gradient, x_columns, y_columns, first};
  const int across = (y_columns + 15) / 16, down = (x_columns + 31) / 32;
  for (int index = warp; index < down * across; index += warps) {
    const int m = index / across * 32, n = (index - index / across * across) * 16;
    float old[2][2][4], c[2][2][4] = {};
    float of_x[2][2] = {};
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        share.load<transposed>(old[p][q], m + 16 * p + g, n + 8 * q + 2 * t);
      }
    }
    const float* place = x + t * shape.stride + m + g;
    const float* other = y + t * shape.stride + n + g;
    const bool with_sums = sums != nullptr && n == 0;
    float old_sums[2][2] = {};
    if (with_sums && !first) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (m + 8 * i + g < x_columns) old_sums[i / 2][i % 2] = sums[m + 8 * i + g];
      }
    }
#pragma unroll 1
    for (int k = 0; k < shape.rows; k += 8) {
      const int low = k * shape.stride, high = low + 4 * shape.stride;
      float2 b[2];
#pragma unroll
      for (int q = 0; q < 2; ++q) b[q] = make_float2(other[low + 8 * q], other[high + 8 * q]);
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const float4 a = make_float4(place[low + 16 * p], place[low + 16 * p + 8],
                                     place[high + 16 * p], place[high + 16 * p + 8]);
        if (with_sums) {
          of_x[p][0] += a.x + a.z;
          of_x[p][1] += a.y + a.w;
        }
#pragma unroll
        for (int q = 0; q < 2; ++q) multiply<exact>(c[p][q], a, b[q]);
      }
    }
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        share.store<transposed>(old[p][q], c[p][q], m + 16 * p + g, n + 8 * q + 2 * t);
      }
    }
    if (!with_sums) continue;
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = of_x[p][half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const int column = m + 16 * p + 8 * half + g;
        if (t == 0 && column < x_columns) sums[column] = old_sums[p][half] + sum;
      }
    }
  }
}

}  // namespace posattn::cuda::large

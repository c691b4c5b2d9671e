// Gradients of weights: sums over a tile's rows on the tensor core, added tile by tile to the
// group's place in global memory. The tensor core truncates when it adds, so its sums start at zero
// in every tile.
#pragma once

#include "posattn/model/cuda/large/tile.cuh"

namespace posattn::cuda::large {

// What a tile's sums are added to.
struct Gradient {
  float* data;  // [rows, columns]
  int rows, columns;
  bool first;  // the first tile of a group writes, the later ones add

  // Columns `column` (a multiple of four) to column + 3 of a row; zeros where there is nothing yet.
  __device__ float4 load(int row, int column) const {
    float4 old = make_float4(0, 0, 0, 0);
    if (first || row >= rows || column >= columns) return old;
    const float* place = data + row * columns + column;
    if (columns % 4 == 0) return load4(place);
    old.x = place[0];
    if (column + 1 < columns) old.y = place[1];
    if (column + 2 < columns) old.z = place[2];
    if (column + 3 < columns) old.w = place[3];
    return old;
  }
  __device__ void store(int row, int column, float4 sums) const {
    if (row >= rows || column >= columns) return;
    float* place = data + row * columns + column;
    if (columns % 4 == 0) {
      store4(place, sums.x, sums.y, sums.z, sums.w);
      return;
    }
    place[0] = sums.x;
    if (column + 1 < columns) place[1] = sums.y;
    if (column + 2 < columns) place[2] = sums.z;
    if (column + 3 < columns) place[3] = sums.w;
  }
};

// Sums of columns of a tile, two of each lane's eight rows, added to [columns].
__device__ inline void add_column_sums(float* sums, int columns, float2 sum, int column, bool first,
                                       int lane) {
#pragma unroll
  for (int other = 1; other < 4; other *= 2) {
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, other);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, other);
  }
  if ((lane & 3) != 0) return;
  if (column < columns) sums[column] = sum.x + (first ? 0 : sums[column]);
  if (column + 1 < columns) sums[column + 1] = sum.y + (first ? 0 : sums[column + 1]);
}

// gradient += x^T y over the tile's rows; sums, where given, += the column sums of x or, with
// sums_of_y, of y. A warp's share is 32 columns of x with 16 of y. A lane's sums belong to columns
// 2g and 2g + 1 of sixteen of x and to 4t .. 4t + 3 of y.
template <bool exact, bool sums_of_y, int tiles>
__device__ inline void add_gradient(const Gradient& gradient, float* sums, const float* x,
                                    const float* y, const Tile<tiles>& shape, int warp, int lane) {
  const int g = lane >> 2, t = lane & 3;
  const int across = (gradient.columns + 15) / 16, down = (gradient.rows + 31) / 32;
  for (int index = warp; index < down * across; index += warps) {
    const int m = index / across * 32, n = (index - index / across * across) * 16;
    const bool with_sums = sums != nullptr && (sums_of_y ? m : n) == 0;
    float4 old[2][2];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        old[p][half] = gradient.load(m + 16 * p + 2 * g + half, n + 4 * t);
      }
    }
    float c[2][2][4] = {};
    float2 of_columns[2] = {};
    const float* place = x + t * shape.stride + m + 2 * g;
    const float* other = y + t * shape.stride + n + 2 * g;
#pragma unroll 2
    for (int k = 0; k < shape.rows; k += 8) {
      const int low = k * shape.stride, high = low + 4 * shape.stride;
      const float2 y_low = load2(other + low), y_high = load2(other + high);
      const float2 b[2] = {make_float2(y_low.x, y_high.x), make_float2(y_low.y, y_high.y)};
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const float2 x_low = load2(place + low + 16 * p), x_high = load2(place + high + 16 * p);
        if (with_sums && !sums_of_y) {
          of_columns[p].x += x_low.x + x_high.x;
          of_columns[p].y += x_low.y + x_high.y;
        }
        multiply<exact, 2>({&c[p][0], &c[p][1]}, make_float4(x_low.x, x_low.y, x_high.x, x_high.y),
                           b);
      }
      if (with_sums && sums_of_y) {
        of_columns[0].x += y_low.x + y_high.x;
        of_columns[0].y += y_low.y + y_high.y;
      }
    }
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 before = old[p][half];
        const float(&even)[4] = c[p][0];
        const float(&odd)[4] = c[p][1];
        gradient.store(m + 16 * p + 2 * g + half, n + 4 * t,
                       make_float4(before.x + even[2 * half], before.y + odd[2 * half],
                                   before.z + even[2 * half + 1], before.w + odd[2 * half + 1]));
      }
    }
    if (!with_sums) continue;
    if (sums_of_y) {
      add_column_sums(sums, gradient.columns, of_columns[0], n + 2 * g, gradient.first, lane);
    } else {
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        add_column_sums(sums, gradient.rows, of_columns[p], m + 16 * p + 2 * g, gradient.first,
                        lane);
      }
    }
  }
}

}  // namespace posattn::cuda::large

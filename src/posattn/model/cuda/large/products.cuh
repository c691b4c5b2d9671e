// Products of a tile's rows with weights on the tensor core.
#pragma once

#include "posattn/model/cuda/large/tile.cuh"

namespace posattn::cuda::large {

// Sums of products of the tile's rows with weights, for 64 columns over all warps: warps w and
// w + 4, which share a tensor core, have columns 8 w .. 8 w + 7 and 8 w + 32 .. 8 w + 39, one of
// the first three fragments of rows, the other of the last two. So a fragment of rows that is read
// counts twice, and all tensor cores have the same work.
struct RowSums {
  static constexpr int fragments = 3;  // the last one unused by warps 4 ..
  static_assert(row_fragments == 2 * fragments - 1);
  float c[2][fragments][4];

  __device__ static int first_row(int warp) { return warp / 4 * 16 * fragments; }
  __device__ static int first_column(int warp) { return 8 * (warp % 4); }

  __device__ void clear() {
    set(0, 0, 0);
    set(1, 0, 0);
  }
  // Every row starts as the bias [outputs] of columns from `base` on.
  __device__ void start_with(const float* bias, int outputs, int base, int warp, int lane) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int column = base + first_column(warp) + 32 * q + 2 * (lane & 3);
      set(q, column < outputs ? bias[column] : 0, column + 1 < outputs ? bias[column + 1] : 0);
    }
  }
  __device__ void add(const RowSums& other) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
#pragma unroll
      for (int r = 0; r < fragments; ++r) {
#pragma unroll
        for (int e = 0; e < 4; ++e) c[q][r][e] += other.c[q][r][e];
      }
    }
  }

  // do_pair(row, column, x, y) with x and y the sums of `column` (even) and the next. Rows may be
  // behind the tile's.
  template <class DoPair>
  __device__ void for_pairs(int base, int warp, int lane, DoPair do_pair) {
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int column = base + first_column(warp) + 32 * q + 2 * t;
#pragma unroll
      for (int r = 0; r < fragments; ++r) {
        const int row = first_row(warp) + 16 * r + g;
        do_pair(row, column, c[q][r][0], c[q][r][1]);
        do_pair(row + 8, column, c[q][r][2], c[q][r][3]);
      }
    }
  }

  __device__ void set(int q, float x, float y) {
#pragma unroll
    for (int r = 0; r < fragments; ++r) {
      c[q][r][0] = c[q][r][2] = x;
      c[q][r][1] = c[q][r][3] = y;
    }
  }
};

// W(n, k) and W(n, k + 1) of W [outputs, depth], or, transposed, of the transpose of what lies
// there as [depth, outputs]. Zero outside.
template <bool exact, bool transposed>
__device__ inline float2 weight_pair(const float* weights, int outputs, int depth, int n, int k) {
  float2 pair = make_float2(0, 0);
  if (n < outputs) {
    if (transposed) {
      if (k < depth) pair.x = weights[k * outputs + n];
      if (k + 1 < depth) pair.y = weights[(k + 1) * outputs + n];
    } else if (depth % 2 == 0) {
      if (k < depth) pair = load2(weights + n * depth + k);
    } else {
      if (k < depth) pair.x = weights[n * depth + k];
      if (k + 1 < depth) pair.y = weights[n * depth + k + 1];
    }
  }
  return make_float2(operand<exact>(pair.x), operand<exact>(pair.y));
}

// The fragment of rows `row` and `row` + 8, columns `column` and the next, at `place`.
template <int stride>
__device__ inline float4 row_fragment(const float* place) {
  const float2 low = load2(place), high = load2(place + 8 * stride);
  return make_float4(low.x, high.x, low.y, high.y);
}

// sums += rows W^T for the first fragments of a warp's rows. Weights come from global memory.
template <bool exact, bool transposed, int stride, int fragments>
__device__ inline void accumulate_fragments(RowSums& sums, const float* rows, const float* weights,
                                            int outputs, int depth, int base, int warp, int lane) {
  const int g = lane >> 2, t = lane & 3;
  const float* place = rows + (RowSums::first_row(warp) + g) * stride + 2 * t;
  const int n = base + RowSums::first_column(warp) + g;
  constexpr int ahead = exact ? 1 : 2;  // eights of the depth
  float2 next[ahead][2];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      next[i][q] =
          weight_pair<exact, transposed>(weights, outputs, depth, n + 32 * q, 8 * i + 2 * t);
    }
  }
#pragma unroll 1
  for (int k = 0; k < depth; k += 8) {
    float2 b[2];
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      b[q] = next[0][q];
#pragma unroll
      for (int i = 1; i < ahead; ++i) next[i - 1][q] = next[i][q];
      next[ahead - 1][q] = weight_pair<exact, transposed>(weights, outputs, depth, n + 32 * q,
                                                          k + 8 * ahead + 2 * t);
    }
#pragma unroll
    for (int r = 0; r < fragments; ++r) {
      const float4 a = row_fragment<stride>(place + 16 * r * stride + k);
      multiply<exact, 2>({&sums.c[0][r], &sums.c[1][r]}, a, b);
    }
  }
}
template <bool exact, bool transposed, int stride>
__device__ inline void accumulate_row_products(RowSums& sums, const float* rows,
                                               const float* weights, int outputs, int depth,
                                               int base, int warp, int lane) {
  if (base + RowSums::first_column(warp) >= outputs) return;
  if (warp < 4) {
    accumulate_fragments<exact, transposed, stride, RowSums::fragments>(
        sums, rows, weights, outputs, depth, base, warp, lane);
  } else {
    accumulate_fragments<exact, transposed, stride, RowSums::fragments - 1>(
        sums, rows, weights, outputs, depth, base, warp, lane);
  }
}

// The same for 64 `tiles` columns and sums of several products: the tensor core truncates when it
// adds, so for fp32 each product starts at zero.
template <bool exact, bool transposed, int tiles>
__device__ inline void add_row_products(RowSums (&sums)[tiles], const float* rows,
                                        const float* weights, int outputs, int depth, int warp,
                                        int lane) {
  constexpr int stride = Tile<tiles>::stride;
#pragma unroll
  for (int part = 0; part < tiles; ++part) {
    if constexpr (exact) {
      RowSums product;
      product.clear();
      accumulate_row_products<exact, transposed, stride>(product, rows, weights, outputs, depth,
                                                         64 * part, warp, lane);
      sums[part].add(product);
    } else {
      accumulate_row_products<exact, transposed, stride>(sums[part], rows, weights, outputs, depth,
                                                         64 * part, warp, lane);
    }
  }
}

// to = rows W^T + bias for `outputs` columns, in shared memory; bias may be null.
template <bool exact, bool transposed, int tiles>
__device__ inline void multiply_rows(float* to, const Tile<tiles>& shape, const float* rows,
                                     const float* weights, const float* bias, int outputs,
                                     int depth, int warp, int lane) {
#pragma unroll 1
  for (int base = 0; base < outputs; base += 64) {
    RowSums sums;
    if (bias != nullptr) {
      sums.start_with(bias, outputs, base, warp, lane);
    } else {
      sums.clear();
    }
    accumulate_row_products<exact, transposed, Tile<tiles>::stride>(sums, rows, weights, outputs,
                                                                    depth, base, warp, lane);
    sums.for_pairs(base, warp, lane, [&](int row, int column, float x, float y) {
      if (row >= shape.rows || column >= padded_to_8(outputs)) return;
      *reinterpret_cast<float2*>(to + row * shape.stride + column) =
          make_float2(operand<exact>(x), operand<exact>(y));
    });
  }
}

}  // namespace posattn::cuda::large

// Products of a tile's rows with weights on the tensor core.
#pragma once

#include "posattn/model/cuda/large/panels.cuh"

namespace posattn::cuda::large {

// Sums of products of the tile's rows with weights, for 64 columns over all warps: a warp has
// sixteen columns of a third of the rows. Warps of one column share a tensor core, so all tensor
// cores have the same work.
template <int tiles>
struct RowSums {
  static constexpr int fragments = (Tile<tiles>::row_fragments + 2) / 3;
  float c[2][fragments][4];

  __device__ static int first_row(int warp) { return warp / 4 * 16 * fragments; }
  __device__ static int first_column(int warp) { return 16 * (warp % 4); }

  __device__ void clear() {
    set(0, 0, 0);
    set(1, 0, 0);
  }
  // Every row starts as the bias [outputs] of columns from `base` on.
  __device__ void start_with(const float* bias, int outputs, int base, int warp, int lane) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int column = base + first_column(warp) + 8 * q + 2 * (lane & 3);
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
    for (int r = 0; r < fragments; ++r) {
      const int row = first_row(warp) + 16 * r + g;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int column = base + first_column(warp) + 8 * q + 2 * t;
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

// The fragment of rows `row` and `row` + 8, columns `column` and the next, at `place`.
template <int stride>
__device__ inline float4 row_fragment(const float* place) {
  const float2 low = load2(place), high = load2(place + 8 * stride);
  return make_float4(low.x, high.x, low.y, high.y);
}

// sums += rows W^T over `depth` columns of the rows, with the weights of a panel.
template <bool exact, int tiles>
__device__ inline void multiply_panel(RowSums<tiles>& sums, const float* rows, const float* panel,
                                      int depth, int warp, int lane) {
  constexpr int stride = Tile<tiles>::stride;
  const int g = lane >> 2, t = lane & 3, first_row = RowSums<tiles>::first_row(warp);
  const float* place = rows + (first_row + g) * stride + 2 * t;
#pragma unroll
  for (int sixteen = 0; sixteen < 2 / tiles; ++sixteen) {
    float4 weights[2];
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      weights[q] = panel_fragments(panel, sixteen, 2 * (warp % 4) + q, lane);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = 16 * sixteen + 8 * half;
      if (k >= depth) return;
      float2 b[2];
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        b[q] = half == 0 ? make_float2(weights[q].x, weights[q].y)
                         : make_float2(weights[q].z, weights[q].w);
      }
#pragma unroll
      for (int r = 0; r < RowSums<tiles>::fragments; ++r) {
        if (Tile<tiles>::row_fragments % 3 != 0 && first_row + 16 * r >= Tile<tiles>::most_rows) {
          break;
        }
        const float4 a = row_fragment<stride>(place + 16 * r * stride + k);
        multiply<exact, 2>({&sums.c[0][r], &sums.c[1][r]}, a, b);
      }
    }
  }
}

// sums += rows W^T with the weights that come next. The rows may be written right before: there is
// a barrier before they are read.
template <bool exact, int tiles, class Panels>
__device__ inline void accumulate_row_products(RowSums<tiles>& sums, const float* rows,
                                               Panels& panels, int warp, int lane) {
  const int depth = panels.weights().depth;
  const bool has_columns =
      panels.first_output() + RowSums<tiles>::first_column(warp) < panels.weights().outputs;
#pragma unroll 1
  for (int k = 0; k < depth; k += Panels::depth) {
    const float* panel = panels.next();
    if (has_columns) multiply_panel<exact>(sums, rows + k, panel, depth - k, warp, lane);
  }
}

// The same for 64 `tiles` columns and sums of several products: the tensor core truncates when it
// adds, so for fp32 each product starts at zero.
template <bool exact, int tiles, class Panels>
__device__ inline void add_row_products(RowSums<tiles> (&sums)[tiles], const float* rows,
                                        Panels& panels, int warp, int lane) {
  const int outputs = panels.weights().outputs;
#pragma unroll
  for (int part = 0; part < tiles; ++part) {
    if (64 * part >= outputs) break;
    if constexpr (exact) {
      RowSums<tiles> product;
      product.clear();
      accumulate_row_products<exact>(product, rows, panels, warp, lane);
      sums[part].add(product);
    } else {
      accumulate_row_products<exact>(sums[part], rows, panels, warp, lane);
    }
  }
}

// to = rows W^T + bias for `outputs` columns, in shared memory; bias may be null.
template <bool exact, int tiles, class Panels>
__device__ inline void multiply_rows(float* to, const Tile<tiles>& shape, const float* rows,
                                     const float* bias, int outputs, Panels& panels, int warp,
                                     int lane) {
#pragma unroll 1
  for (int base = 0; base < outputs; base += 64) {
    RowSums<tiles> sums;
    if (bias != nullptr) {
      sums.start_with(bias, outputs, base, warp, lane);
    } else {
      sums.clear();
    }
    accumulate_row_products<exact>(sums, rows, panels, warp, lane);
    sums.for_pairs(base, warp, lane, [&](int row, int column, float x, float y) {
      if (row >= shape.rows || column >= padded_to_8(outputs)) return;
      *reinterpret_cast<float2*>(to + row * shape.stride + column) =
          make_float2(operand<exact>(x), operand<exact>(y));
    });
  }
}

}  // namespace posattn::cuda::large

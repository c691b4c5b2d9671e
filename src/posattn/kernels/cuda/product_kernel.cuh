// The kernel of a product: tiles of C from tiles of A and B.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/product_operand.cuh"

namespace posattn::cuda {

constexpr int product_threads = 128;
constexpr int product_stages = 3;  // of the operands: one computed, two on their way

// A team of warps, `row_warps` by `column_warps`, computes a tile of C in stages of `depth_`; each
// warp has row_fragments_ x column_fragments_ fragments of 16 x 8. A block has as many teams as it
// has threads for.
template <int row_warps, int column_warps, int row_fragments_, int column_fragments_, int depth_>
struct Tiling {
  static constexpr int row_fragments = row_fragments_, column_fragments = column_fragments_;
  static constexpr int depth = depth_;
  static constexpr int warp_rows = 16 * row_fragments, warp_columns = 8 * column_fragments;
  static constexpr int rows = row_warps * warp_rows, columns = column_warps * warp_columns;
  static constexpr int warps_across = column_warps;
  static constexpr int team = 32 * row_warps * column_warps, teams = product_threads / team;
  static_assert(teams * team == product_threads && (team == 32 || teams == 1));
  // On one multiprocessor: a warp alone has little to do while it waits.
  static constexpr int blocks = team == 32 ? 7 : 4;

  template <bool along_depth>
  using OperandA = OperandTile<rows, depth, team, along_depth>;
  template <bool along_depth>
  using OperandB = OperandTile<columns, depth, team, along_depth>;

  __device__ static void meet() {
    if constexpr (team == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

struct ProductPlan {
  Product product;
  int32_t row_tiles, column_tiles, parts, part_depth;
  int32_t tiles;   // of one slot, parts counted
  int32_t stages;  // in shared memory
  bool aligned_a, aligned_b;
  bool paired;  // two columns of what is written are one aligned float2
  const SlotStep* steps;
  float* workspace;  // parts [slot][part][outer][inner][rows][columns]
};

// The epilogue of one element.
__device__ inline float finished(const Product& p, float sum, float before, const float* bias) {
  float value = p.alpha * sum;
  if (p.accumulate) value += before;
  if (bias) value += *bias;
  return p.relu && value < 0 ? 0 : value;  // keeps a NaN
}
// Where a row's bias begins, or null.
__device__ inline const float* bias_of(const Product& p, int slot, int row) {
  if (!p.bias) return nullptr;
  const int64_t bias_row = p.bias_rows == 0 ? 0 : row / p.bias_rows;
  return p.bias + slot * p.bias_slot + bias_row * p.bias_stride;
}

// fp32: each operand is the sum of two tf32 numbers, and three of the four products count; the
// fourth is 2^-22 of the whole at most, since the first number is rounded to nearest. tf32:
// operands are rounded.
template <bool exact, int count>
__device__ inline void split(float (&x)[count], float (&low)[count]) {
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const float high = exact ? tf32_part(round_to_tf32(x[e])) : round_to_tf32(x[e]);
    low[e] = x[e] - high;
    x[e] = high;
  }
}
template <int row_fragments, int column_fragments>
__device__ inline void multiply(float (&c)[row_fragments][column_fragments][4], int n,
                                const float (&a)[row_fragments][4], const float (&b)[2]) {
#pragma unroll
  for (int m = 0; m < row_fragments; ++m) {
    mma_tf32(c[m][n], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
  }
}

// Where the matrix C, or a part of it, lies.
__device__ inline float* destination(const ProductPlan& plan, int part, int slot, int outer,
                                     int inner) {
  const Product& p = plan.product;
  const int64_t matrix = (static_cast<int64_t>(part) * p.outer + outer) * p.inner + inner;
  return plan.parts == 1 ? p.c.data + slot * p.c.slot + outer * p.c.outer + inner * p.c.inner
                         : plan.workspace + slot * product_workspace + matrix * p.rows * p.columns;
}

// Writes the warp's part of a tile, whose first element is (first_row, first_column), to a matrix.
template <class Tile>
__device__ inline void write_tile(
    const ProductPlan& plan, float* to, int slot, int first_row, int first_column,
    const float (&c)[Tile::row_fragments][Tile::column_fragments][4]) {
  const Product& p = plan.product;
  const bool whole = plan.parts == 1;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  int64_t offsets[Tile::column_fragments];
#pragma unroll
  for (int n = 0; n < Tile::column_fragments; ++n) {
    const int column = first_column + 8 * n + 2 * t;
    offsets[n] = whole ? p.c.column.offset(column) : column;
  }
#pragma unroll
  for (int i = 0; i < 2 * Tile::row_fragments; ++i) {
    const int row = first_row + 8 * i + g;
    if (row >= p.rows) break;
    float* line = to + (whole ? p.c.row.offset(row) : static_cast<int64_t>(row) * p.columns);
    const float* bias = whole ? bias_of(p, slot, row) : nullptr;
    const auto value = [&](int n, int e, float before) {
      const float sum = c[i / 2][n][i % 2 * 2 + e];
      const int column = first_column + 8 * n + 2 * t + e;
      return whole ? finished(p, sum, before, bias ? bias + column : nullptr) : sum;
    };
    if (plan.paired) {
      float2 values[Tile::column_fragments];  // all reads before the first write
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; ++n) {
        if (first_column + 8 * n + 2 * t >= p.columns) break;
        const auto* place = reinterpret_cast<const float2*>(line + offsets[n]);
        const float2 before = whole && p.accumulate ? *place : make_float2(0, 0);
        values[n] = make_float2(value(n, 0, before.x), value(n, 1, before.y));
      }
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; ++n) {
        if (first_column + 8 * n + 2 * t >= p.columns) break;
        *reinterpret_cast<float2*>(line + offsets[n]) = values[n];
      }
      continue;
    }
#pragma unroll
    for (int n = 0; n < Tile::column_fragments; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = first_column + 8 * n + 2 * t + e;
        if (column >= p.columns) break;
        float* place = line + (whole ? p.c.column.offset(column) : column);
        *place = value(n, e, whole && p.accumulate ? *place : 0.0f);
      }
    }
  }
}

template <class Tile, bool exact, bool a_along_depth, bool b_along_depth>
__global__ void __launch_bounds__(product_threads, Tile::blocks) product_kernel(ProductPlan plan) {
  using OperandA = typename Tile::template OperandA<a_along_depth>;
  using OperandB = typename Tile::template OperandB<b_along_depth>;
  const Product& p = plan.product;
  const int slot = blockIdx.y;
  if (plan.steps && plan.steps[slot].samples == 0) return;

  const int team = threadIdx.x / Tile::team, thread = threadIdx.x % Tile::team;
  int left_over = static_cast<int>(blockIdx.x) * Tile::teams + team;
  if (left_over >= plan.tiles) return;
  const auto next = [&](int count) {
    if (count == 1) return 0;
    const int index = left_over % count;
    left_over /= count;
    return index;
  };
  const int column_tile = next(plan.column_tiles), row_tile = next(plan.row_tiles);
  const int inner = next(p.inner), outer = next(p.outer), part = left_over;
  float* const to = destination(plan, part, slot, outer, inner);

  const int first_row = row_tile * Tile::rows, first_column = column_tile * Tile::columns;
  const int depth_begin = part * plan.part_depth;
  const int depth_end = min(p.depth, depth_begin + plan.part_depth);
  const int stages = (depth_end - depth_begin + Tile::depth - 1) / Tile::depth;
  const OperandA a(p.a.data + slot * p.a.slot + outer * p.a.outer + inner * p.a.inner, p.a.row,
                   p.a.column, thread, first_row, p.rows, depth_end, plan.aligned_a);
  const OperandB b(p.b.data + slot * p.b.slot + outer * p.b.outer + inner * p.b.inner, p.b.column,
                   p.b.row, thread, first_column, p.columns, depth_end, plan.aligned_b);

  constexpr int stage_floats = OperandA::floats + OperandB::floats;
  float* shared = reinterpret_cast<float*>(dynamic_shared()) + team * plan.stages * stage_floats;
  const auto load = [&](int stage) {
    if (stage < stages) {
      float* tile = shared + stage % product_stages * stage_floats;
      a.load(tile, depth_begin + stage * Tile::depth);
      b.load(tile + OperandA::floats, depth_begin + stage * Tile::depth);
    }
    commit_copies();
  };

  const int lane = threadIdx.x % 32, warp = thread / 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp / Tile::warps_across * Tile::warp_rows;
  const int warp_column = warp % Tile::warps_across * Tile::warp_columns;
  // A warp may lie outside of a small C: it only helps to copy.
  const bool idle = first_row + warp_row >= p.rows || first_column + warp_column >= p.columns;
  float sums[Tile::row_fragments][Tile::column_fragments][4] = {};
#pragma unroll
  for (int stage = 0; stage < product_stages - 1; ++stage) load(stage);
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    wait_copies<product_stages - 2>();
    Tile::meet();
    load(stage + product_stages - 1);  // into the buffer that all warps have left
    if (idle) continue;
    const float* tile_a = shared + stage % product_stages * stage_floats;
    const float* tile_b = tile_a + OperandA::floats;
    const int left = depth_end - depth_begin - stage * Tile::depth;
    // The tensor core cuts off what does not fit when it adds, so long sums would be biased: for
    // fp32 it adds up one stage, and ordinary additions the stages.
    float stage_sums[Tile::row_fragments][Tile::column_fragments][4] = {};
    auto& c = exact ? stage_sums : sums;
#pragma unroll
    for (int step = 0; step < Tile::depth; step += 8) {
      if (step >= left) break;
      const int k = step + 2 * t;
      float a_high[Tile::row_fragments][4], a_low[Tile::row_fragments][4];
#pragma unroll
      for (int m = 0; m < Tile::row_fragments; ++m) {
        const int row = warp_row + 16 * m + g;
        const float2 upper = OperandA::pair(tile_a, row, k);
        const float2 lower = OperandA::pair(tile_a, row + 8, k);
        a_high[m][0] = upper.x;
        a_high[m][1] = lower.x;
        a_high[m][2] = upper.y;
        a_high[m][3] = lower.y;
        split<exact>(a_high[m], a_low[m]);
      }
#pragma unroll
      for (int n = 0; n < Tile::column_fragments; ++n) {
        const float2 both = OperandB::pair(tile_b, warp_column + 8 * n + g, k);
        float b_high[2] = {both.x, both.y};
        float b_low[2];
        split<exact>(b_high, b_low);
        if constexpr (exact) {
          multiply(c, n, a_low, b_high);
          multiply(c, n, a_high, b_low);
        }
        multiply(c, n, a_high, b_high);
      }
    }
    if constexpr (exact) {
#pragma unroll
      for (int m = 0; m < Tile::row_fragments; ++m) {
#pragma unroll
        for (int n = 0; n < Tile::column_fragments; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) sums[m][n][e] += stage_sums[m][n][e];
        }
      }
    }
  }
  if (idle) return;
  write_tile<Tile>(plan, to, slot, first_row + warp_row, first_column + warp_column, sums);
}

}  // namespace posattn::cuda

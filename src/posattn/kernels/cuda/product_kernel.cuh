// The kernel of a product makes tiles of C from tiles of A and B.
#pragma once

#include <type_traits>

#include "posattn/kernels/cuda/product_operand.cuh"
#include "posattn/kernels/cuda/product_plan.cuh"

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
  // On one multiprocessor, as many as have registers enough.
  static constexpr int blocks = row_fragments * column_fragments < 8 ? 6 : 4;

  template <bool along_depth>
  using OperandA = OperandTile<rows, depth, along_depth>;
  template <bool along_depth>
  using OperandB = OperandTile<columns, depth, along_depth>;
  template <class Operand, bool direct>
  using Copies = std::conditional_t<direct, DirectCopies<Operand, team>, AnyCopies<Operand, team>>;

  __device__ static void meet() {
    if constexpr (team == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

// c += a depth of 8, from `k` = 2t of lane t on, of the rows and columns of this lane. Two columns
// of fragments at once: enough products that do not wait for each other, and few registers.
template <class Tile, bool exact, class OperandA, class OperandB>
__device__ inline void multiply_step(Fragments<Tile>& c, const float* a, const float* b, int k) {
  float a_high[Tile::row_fragments][4], a_low[Tile::row_fragments][4];
#pragma unroll
  for (int m = 0; m < Tile::row_fragments; ++m) {
    const float2 upper = OperandA::pair(a, 16 * m, k), lower = OperandA::pair(a, 16 * m + 8, k);
    a_high[m][0] = upper.x;
    a_high[m][1] = lower.x;
    a_high[m][2] = upper.y;
    a_high[m][3] = lower.y;
#pragma unroll
    for (int e = 0; e < 4; ++e) split<exact>(a_high[m][e], a_low[m][e]);
  }
#pragma unroll
  for (int first = 0; first < Tile::column_fragments; first += 2) {
    float b_high[2][2], b_low[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float2 both = OperandB::pair(b, 8 * (first + n), k);
      b_high[n][0] = both.x;
      b_high[n][1] = both.y;
#pragma unroll
      for (int e = 0; e < 2; ++e) split<exact>(b_high[n][e], b_low[n][e]);
    }
    const auto multiply = [&](const auto& x, const float(&y)[2][2]) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int m = 0; m < Tile::row_fragments; ++m) {
          mma_tf32(c[m][first + n], x[m][0], x[m][1], x[m][2], x[m][3], y[n][0], y[n][1]);
        }
      }
    };
    if constexpr (exact) {
      multiply(a_low, b_high);
      multiply(a_high, b_low);
    }
    multiply(a_high, b_high);
  }
}

template <class Tile, bool exact, bool a_along_depth, bool b_along_depth, bool direct>
__global__ void __launch_bounds__(product_threads, Tile::blocks) product_kernel(ProductPlan plan) {
  using OperandA = typename Tile::template OperandA<a_along_depth>;
  using OperandB = typename Tile::template OperandB<b_along_depth>;
  const Product& p = plan.product;
  const int slot = blockIdx.y;
  if (plan.steps && plan.steps[slot].samples == 0) return;

  const int team = threadIdx.x / Tile::team, thread = threadIdx.x % Tile::team;
  uint32_t left_over = blockIdx.x * Tile::teams + team;
  if (left_over >= static_cast<uint32_t>(plan.tiles)) return;
  const int column_tile = plan.column_tiles.take_remainder(left_over);
  const int row_tile = plan.row_tiles.take_remainder(left_over);
  const int inner = plan.inner.take_remainder(left_over);
  const int outer = plan.outer.take_remainder(left_over), part = static_cast<int>(left_over);
  const auto of_batch = [&](const auto& m) {
    return m.data + slot * m.slot + outer * m.outer + inner * m.inner;
  };

  const int first_row = row_tile * Tile::rows, first_column = column_tile * Tile::columns;
  const int begin = part * plan.part_depth, end = min(p.depth, begin + plan.part_depth);
  constexpr int stage_floats = OperandA::floats + OperandB::floats;
  float* const shared =
      reinterpret_cast<float*>(dynamic_shared()) + team * plan.stages * stage_floats;
  typename Tile::template Copies<OperandA, direct> copies_a(
      {of_batch(p.a), plan.a_row, plan.a_column, first_row, p.rows, begin, end}, plan.advance_a,
      plan.aligned_a, thread, shared);
  typename Tile::template Copies<OperandB, direct> copies_b(
      {of_batch(p.b), plan.b_column, plan.b_row, first_column, p.columns, begin, end},
      plan.advance_b, plan.aligned_b, thread, shared + OperandA::floats);

  const int lane = threadIdx.x % 32, warp = thread / 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp / Tile::warps_across * Tile::warp_rows;
  const int warp_column = warp % Tile::warps_across * Tile::warp_columns;
  // A warp may lie outside of a small C: it only helps to copy.
  const bool idle = first_row + warp_row >= p.rows || first_column + warp_column >= p.columns;

  // This lane's first elements of the stage to compute.
  const float* a = shared + OperandA::place(warp_row + g, 2 * t);
  const float* b = shared + OperandA::floats + OperandB::place(warp_column + g, 2 * t);
  // From a stage's place in shared memory to the next one's; `place` counts them.
  const auto step_from = [](int& place) {
    place = place == product_stages - 1 ? 0 : place + 1;
    return place == 0 ? (1 - product_stages) * stage_floats : stage_floats;
  };
  int computed = 0, loaded = 0;
  Fragments<Tile> sums = {};
  constexpr int ahead = (product_stages - 1) * Tile::depth;
  // `left`: depth from the stage to compute on; a stage is copied `ahead` of that.
#pragma unroll 1
  for (int left = end - begin + ahead; left > 0; left -= Tile::depth) {
    wait_copies<product_stages - 2>();
    Tile::meet();
    if (left > ahead) {  // into the buffer that all warps have left
      const int step = step_from(loaded);
      copies_a.load(left - ahead, step);
      copies_b.load(left - ahead, step);
    }
    commit_copies();
    if (left > end - begin || idle) continue;
    // The tensor core cuts off what does not fit when it adds, so long sums would be biased: for
    // fp32 it adds up one stage, and ordinary additions the stages.
    Fragments<Tile> stage_sums = {};
    auto& c = exact ? stage_sums : sums;
#pragma unroll
    for (int k = 0; k < Tile::depth; k += 16) {
      if (k > 0 && k >= left) break;
      multiply_step<Tile, exact, OperandA, OperandB>(c, a, b, k);
      multiply_step<Tile, exact, OperandA, OperandB>(c, a, b, k + 8);
    }
    const int step = step_from(computed);
    a += step;
    b += step;
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
  float* const to = of_batch(p.c) + part * plan.part_stride;
  write_tile<Tile>(plan, to, slot, first_row + warp_row, first_column + warp_column, p.columns,
                   sums);
}

}  // namespace posattn::cuda

// A block takes a run of the depth through all of C, or a large tile of it, so that operands are
// read once. Both lie in shared memory as they do in global memory, and a lane reads four
// neighbours at a time: the kernel may choose which rows and columns of C a fragment holds.
#include <algorithm>

#include "posattn/kernels/cuda/product_plan.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr int warp_rows = 32, warp_columns = 64, most_warps = 8;
constexpr int stage_depth = 16, deep_stages = 4;  // one computed, the others on their way
constexpr int flush_stages = 4;  // after so many, fp32 sums leave the tensor core's accumulators
constexpr int pad = 8;           // of a line in shared memory: what a warp reads meets all banks
constexpr int64_t least_depth = 1024;
constexpr int64_t least_part_depth = 192, depth_multiple = stage_depth * flush_stages;
// To choose a grid by; results do not depend on it.
constexpr int multiprocessors = 132, multiprocessor_warps = 32;

struct DeepGrid {
  int32_t row_warps, column_warps, row_tiles, column_tiles;
  int32_t block_parts, part_blocks;
  int64_t part_floats;
  float* workspace;  // [slots, product_workspace]

  __host__ __device__ int tile_rows() const { return row_warps * warp_rows; }
  __host__ __device__ int tile_columns() const { return column_warps * warp_columns; }
  __host__ __device__ int pitch_a() const { return tile_rows() + pad; }
  __host__ __device__ int pitch_b() const { return tile_columns() + pad; }
  __host__ __device__ int stage_floats() const { return stage_depth * (pitch_a() + pitch_b()); }
  int64_t shared_bytes() const { return int64_t{deep_stages} * stage_floats() * sizeof(float); }
};

// A thread's part of the copies of an operand: four columns of every `step_`-th line of a stage.
class StageCopies {
 public:
  // `columns` of a line are there; what lies beyond in shared memory may be anything.
  __device__ StageCopies(const float* from, int64_t stride, int columns, int tile_columns,
                         int pitch)
      : line_(static_cast<int>(threadIdx.x) / (tile_columns / 4)),
        step_(static_cast<int>(blockDim.x) / (tile_columns / 4)),
        pitch_(step_ * pitch),
        line_stride_(step_ * stride),
        stage_stride_(stage_depth * stride) {
    const int column = static_cast<int>(threadIdx.x) % (tile_columns / 4) * 4;
    inside_ = column < columns;
    from_ = from + line_ * stride + column;
    to_ = line_ * pitch + column;
  }

  // Starts to copy the next stage, of which `present` lines exist; the others become zero.
  __device__ void load(float* shared, int present) {
    if (inside_) {
      float* to = shared + to_;
      const float* from = from_;
      if (present >= stage_depth) {
#pragma unroll 4
        for (int line = line_; line < stage_depth; line += step_) {
          copy_async(to, from);
          to += pitch_;
          from += line_stride_;
        }
      } else {
#pragma unroll 1
        for (int line = line_; line < stage_depth; line += step_) {
          copy_async_part<16>(to, line < present ? from : from_, line < present ? 16 : 0);
          to += pitch_;
          from += line_stride_;
        }
      }
    }
    from_ += stage_stride_;
  }

 private:
  int line_, step_, pitch_, to_;
  int64_t line_stride_, stage_stride_;
  const float* from_;
  bool inside_;
};

// A warp's fragments of C. With lane (g, t): row 4 g + 2 m + e of the warp's tile is row g + 8 e of
// fragment m, and column 32 i + 4 j + f is column j of fragment 4 i + f, so four neighbours in
// memory are a lane's parts of four fragments.
using DeepFragments = float[2][8][4];

template <bool exact>
__device__ inline void multiply_lines(DeepFragments& c, const float* a, int pitch_a, const float* b,
                                      int pitch_b, float4& row_sums) {
  const float4 first = *reinterpret_cast<const float4*>(a);
  const float4 second = *reinterpret_cast<const float4*>(a + 4 * pitch_a);
  row_sums.x += first.x + second.x;
  row_sums.y += first.y + second.y;
  row_sums.z += first.z + second.z;
  row_sums.w += first.w + second.w;
  float a_high[2][4] = {{first.x, first.y, second.x, second.y},
                        {first.z, first.w, second.z, second.w}};
  float a_low[2][4];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int e = 0; e < 4; ++e) split<exact>(a_high[m][e], a_low[m][e]);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float4 upper = *reinterpret_cast<const float4*>(b + 32 * i);
    const float4 lower = *reinterpret_cast<const float4*>(b + 32 * i + 4 * pitch_b);
    float b_high[4][2] = {
        {upper.x, lower.x}, {upper.y, lower.y}, {upper.z, lower.z}, {upper.w, lower.w}};
    float b_low[4][2];
#pragma unroll
    for (int f = 0; f < 4; ++f) {
      split<exact>(b_high[f][0], b_low[f][0]);
      split<exact>(b_high[f][1], b_low[f][1]);
    }
    const auto multiply = [&](const float(&x)[2][4], const float(&y)[4][2]) {
#pragma unroll
      for (int f = 0; f < 4; ++f) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          mma_tf32(c[m][4 * i + f], x[m][0], x[m][1], x[m][2], x[m][3], y[f][0], y[f][1]);
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

// Adds `from` to `to` and clears it.
__device__ inline void flush(DeepFragments& to, DeepFragments& from) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        to[m][n][e] += from[m][n][e];
        from[m][n][e] = 0;
      }
    }
  }
}

// Writes the warp's tile, whose first element is (first_row, first_column), to [rows, columns].
__device__ inline void write_part(const Product& p, float* to, int first_row, int first_column,
                                  const DeepFragments& c) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = first_row + 4 * g + r;
    if (row >= p.rows) break;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = first_column + 32 * i + 8 * t + 4 * half;
        const int e = r % 2 * 2 + half;
        if (column >= p.columns) continue;
        *reinterpret_cast<float4*>(to + int64_t{1} * row * p.columns + column) =
            make_float4(c[r / 2][4 * i][e], c[r / 2][4 * i + 1][e], c[r / 2][4 * i + 2][e],
                        c[r / 2][4 * i + 3][e]);
      }
    }
  }
}

template <bool exact>
__global__ void __launch_bounds__(32 * most_warps, exact ? 1 : 2)
    deep_product_kernel(ProductPlan plan, DeepGrid grid) {
  const Product& p = plan.product;
  const int slot = blockIdx.y;
  if (plan.steps && plan.steps[slot].samples == 0) return;
  const int column_tile = static_cast<int>(blockIdx.x) % grid.column_tiles;
  const int row_tile = static_cast<int>(blockIdx.x) / grid.column_tiles % grid.row_tiles;
  const int part_block = static_cast<int>(blockIdx.x) / (grid.column_tiles * grid.row_tiles);
  const int first_row = row_tile * grid.tile_rows();
  const int first_column = column_tile * grid.tile_columns();
  const int first_part = part_block * grid.block_parts;
  const int begin = first_part * plan.part_depth;
  const int depth = min(p.depth - begin, grid.block_parts * plan.part_depth);
  const int stages = (depth + stage_depth - 1) / stage_depth;

  auto* const shared = reinterpret_cast<float*>(dynamic_shared());
  const int pitch_a = grid.pitch_a(), pitch_b = grid.pitch_b(), stage_floats = grid.stage_floats();
  const int64_t stride_a = p.a.column.stride, stride_b = p.b.row.stride;
  const float* from_a = p.a.data + slot * p.a.slot + begin * stride_a + first_row;
  const float* from_b = p.b.data + slot * p.b.slot + begin * stride_b + first_column;
  const int rows = min(grid.tile_rows(), p.rows - first_row);
  const int columns = min(grid.tile_columns(), p.columns - first_column);
  StageCopies copies_a(from_a, stride_a, rows, grid.tile_rows(), pitch_a);
  StageCopies copies_b(from_b, stride_b, columns, grid.tile_columns(), pitch_b);
  const auto load = [&](int stage) {
    const int present = depth - stage * stage_depth;
    if (present > 0) {
      float* to = shared + stage % deep_stages * stage_floats;
      copies_a.load(to, present);
      copies_b.load(to + stage_depth * pitch_a, present);
    }
    commit_copies();
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp / grid.column_warps * warp_rows;
  const int warp_column = warp % grid.column_warps * warp_columns;
  const bool idle = warp_row >= rows || warp_column >= columns;
  const bool sums_rows = p.row_sums && first_column + warp_column == 0;
  const int part_stages = plan.part_depth / stage_depth;
  int left_in_part = part_stages;
  float* part = grid.workspace + slot * product_workspace + first_part * grid.part_floats;
  DeepFragments sums = {}, stage_sums = {};
  float4 row_sums = make_float4(0, 0, 0, 0);
#pragma unroll 1
  for (int stage = 0; stage < deep_stages - 1; ++stage) load(stage);
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    wait_copies<deep_stages - 2>();
    __syncthreads();
    load(stage + deep_stages - 1);  // into the buffer that all warps have left
    if (idle) continue;
    const float* a = shared + stage % deep_stages * stage_floats;
    const float* b = a + stage_depth * pitch_a;
    a += t * pitch_a + warp_row + 4 * g;
    b += t * pitch_b + warp_column + 4 * g;
    auto& to = exact ? stage_sums : sums;
#pragma unroll
    for (int k = 0; k < stage_depth; k += 8) {
      multiply_lines<exact>(to, a + k * pitch_a, pitch_a, b + k * pitch_b, pitch_b, row_sums);
    }
    const bool last = --left_in_part == 0 || stage + 1 == stages;
    if (exact && (last || (stage + 1) % flush_stages == 0)) flush(sums, stage_sums);
    if (!last) continue;
    write_part(p, part, first_row + warp_row, first_column + warp_column, sums);
    if (sums_rows) {
      float four[4] = {row_sums.x, row_sums.y, row_sums.z, row_sums.w};
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        four[r] += __shfl_xor_sync(0xffffffffu, four[r], 1);
        four[r] += __shfl_xor_sync(0xffffffffu, four[r], 2);
        const int row = first_row + warp_row + 4 * g + r;
        if (t == 0 && row < p.rows) part[int64_t{1} * p.rows * p.columns + row] = four[r];
      }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[m][n][e] = 0;
      }
    }
    row_sums = make_float4(0, 0, 0, 0);
    left_in_part = part_stages;
    part += grid.part_floats;
  }
}

// All of C in a block where it has warps enough for that; small tiles where there would be too few
// blocks.
DeepGrid choose_grid(const ProductPlan& plan, float* workspace) {
  const Product& p = plan.product;
  DeepGrid grid{};
  const auto column_warps = static_cast<int32_t>(ceil_div(p.columns, warp_columns));
  const auto row_warps = static_cast<int32_t>(ceil_div(p.rows, warp_rows));
  const auto blocks = [&] {
    grid.row_tiles = static_cast<int32_t>(ceil_div(row_warps, grid.row_warps));
    grid.column_tiles = static_cast<int32_t>(ceil_div(column_warps, grid.column_warps));
    return int64_t{1} * grid.row_tiles * grid.column_tiles * plan.parts * p.slots;
  };
  grid.column_warps = std::min(column_warps, row_warps == 1 ? most_warps : most_warps / 2);
  grid.row_warps = std::min(row_warps, most_warps / grid.column_warps);
  const int64_t most_bytes = device_limits().shared_bytes;
  while (grid.shared_bytes() > most_bytes) grid.column_warps = (grid.column_warps + 1) / 2;
  while (blocks() < multiprocessors && grid.row_warps * grid.column_warps > 2) {
    int32_t& larger = grid.row_warps > grid.column_warps ? grid.row_warps : grid.column_warps;
    larger = (larger + 1) / 2;
  }
  const int64_t most_blocks = multiprocessor_warps / (grid.row_warps * grid.column_warps);
  grid.block_parts = static_cast<int32_t>(
      std::clamp<int64_t>(blocks() / (most_blocks * multiprocessors), 1, plan.parts));
  grid.part_blocks = static_cast<int32_t>(ceil_div(plan.parts, grid.block_parts));
  grid.part_floats = deep_part_floats(p);
  grid.workspace = workspace;
  return grid;
}

template <bool exact>
void launch_precision(const ProductPlan& plan, const DeepGrid& grid, cudaStream_t stream) {
  const auto kernel = deep_product_kernel<exact>;
  allow_shared_bytes(kernel, 200 * 1024);
  launch(kernel,
         dim3(static_cast<unsigned>(grid.part_blocks * grid.row_tiles * grid.column_tiles),
              plan.product.slots),
         dim3(32 * grid.row_warps * grid.column_warps), grid.shared_bytes(), stream, plan, grid);
}

}  // namespace

bool deep_product_fits(const Product& p) {
  return p.depth >= least_depth && p.outer == 1 && p.inner == 1 && p.rows % 4 == 0 &&
         p.columns % 4 == 0 && aligned(p, p.a, p.a.row, p.a.column, 4) &&
         aligned(p, p.b, p.b.column, p.b.row, 4) && p.a.row.group == 0 && p.a.column.group == 0 &&
         p.b.row.group == 0 && p.b.column.group == 0 &&
         4 * deep_part_floats(p) <= product_workspace;
}

int64_t deep_part_floats(const Product& p) { return int64_t{1} * p.rows * (p.columns + 1); }

int32_t deep_part_depth(const Product& p) {
  const int64_t most_parts = product_workspace / deep_part_floats(p);
  const int64_t depth = std::max(least_part_depth, ceil_div(p.depth, most_parts));
  return static_cast<int32_t>(ceil_div(depth, depth_multiple) * depth_multiple);
}

void launch_deep_product(const ProductPlan& plan, Precision precision, float* workspace,
                         cudaStream_t stream) {
  const DeepGrid grid = choose_grid(plan, workspace);
  if (precision == Precision::fp32) {
    launch_precision<true>(plan, grid, stream);
  } else {
    launch_precision<false>(plan, grid, stream);
  }
}

}  // namespace posattn::cuda

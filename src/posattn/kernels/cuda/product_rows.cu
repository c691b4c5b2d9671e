// B lies in shared memory as the tensor core wants it, split beforehand, and a block takes many
// rows through it. A goes from global memory into registers without a detour: every element of it
// is wanted by one lane of one warp. So A is read once, C written once, and nothing waits.
#include <algorithm>

#include "posattn/kernels/cuda/curve.cuh"
#include "posattn/kernels/cuda/product_plan.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

template <bool exact>
constexpr int row_warps = exact ? 12 : 16;  // of a block, as many as have registers enough
template <bool exact>
constexpr int row_threads = 32 * row_warps<exact>;
constexpr int tile_rows = 16;              // of a warp
constexpr int chunk_depth = 32;            // of A in registers
constexpr int least_rows = 512;            // fewer have not enough warps
constexpr int column_step = 32;            // a block has a multiple of these columns
constexpr int64_t bias_bytes = 16 * 1024;  // kept free for a bias
constexpr int multiprocessors = 132;       // to choose a grid by; results do not depend on it

struct RowTile {  // a warp's fragments of C at a time
  static constexpr int row_fragments = 1, column_fragments = 8;
};

struct RowGrid {
  int32_t block_columns, column_blocks, row_blocks;
};

// Lane (g, t) reads A(g, k .. k + 3) and A(g + 8, k .. k + 3) with k = 16 j + 4 t as two float4:
// the first halves are its part of a depth of 8 (elements t and t + 4 of the tensor core's order),
// the second halves of the next. B is packed in the same order: [depth / 8][fragment][lane], float4
// of both elements' high and low parts; without low parts, [depth / 16][fragment][lane], the float4
// of both halves.
template <bool exact>
__device__ void pack_matrix(const ProductPlan& plan, const float* b, int first_column,
                            int fragments, float4* packed) {
  const Product& p = plan.product;
  const int count = (p.depth + 15) / 16 * fragments * 32;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += row_threads<exact>) {
    const int lane = i % 32, fragment = i / 32 % fragments, j = i / 32 / fragments;
    const int n = first_column + 8 * fragment + lane / 4, k = 16 * j + lane % 4 * 4;
    float high[4], low[4];
    const float* column = b + (n < p.columns ? plan.b_column.offset(n) : 0);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool inside = n < p.columns && k + e < p.depth;
      high[e] = inside ? column[plan.b_row.offset(k + e)] : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) split<exact>(high[e], low[e]);
    if constexpr (exact) {
      float4* place = packed + (2 * j * fragments + fragment) * 32 + lane;
      place[0] = make_float4(high[0], high[1], low[0], low[1]);
      place[fragments * 32] = make_float4(high[2], high[3], low[2], low[3]);
    } else {
      packed[i] = make_float4(high[0], high[1], high[2], high[3]);
    }
  }
}

// Holds a lane's part of 16 rows and a chunk of the depth.
struct RowChunk {
  float4 upper[2], lower[2];

  __device__ void load(const Product& p, const float* a, int row, int k) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      upper[j] = lower[j] = make_float4(0, 0, 0, 0);
      if (k + 16 * j >= p.depth) continue;
      const float* from = a + row * p.a.row.stride + k + 16 * j;
      if (row < p.rows) upper[j] = *reinterpret_cast<const float4*>(from);
      if (row + 8 < p.rows) lower[j] = *reinterpret_cast<const float4*>(from + 8 * p.a.row.stride);
    }
  }
};

// Holds the chunk as operands [depth of 8][element].
template <bool exact>
struct RowOperand {
  float high[4][4], low[4][4];

  __device__ void set(const RowChunk& chunk) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float4 u = chunk.upper[j], l = chunk.lower[j];
      const float values[8] = {u.x, l.x, u.y, l.y, u.z, l.z, u.w, l.w};
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        high[2 * j + e / 4][e % 4] = values[e];
        split<exact>(high[2 * j + e / 4][e % 4], low[2 * j + e / 4][e % 4]);
      }
    }
  }
};

__device__ inline void multiply(float (&c)[4], const float (&a)[4], float b0, float b1) {
  mma_tf32(c, a[0], a[1], a[2], a[3], b0, b1);
}

// c += a chunk of A times four fragments of B, which lie at b: [depth][fragment][lane].
template <bool exact>
__device__ void multiply_chunk(float (*c)[4], const RowOperand<exact>& a, const float4* b,
                               int fragments, int depth_left) {
#pragma unroll
  for (int j = 0; j < chunk_depth / 16; ++j) {
    if (16 * j >= depth_left) break;
    float4 both[4];
    if constexpr (exact) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int step = 2 * j + half;
#pragma unroll
        for (int n = 0; n < 4; ++n) both[n] = b[(step * fragments + n) * 32];
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(c[n], a.low[step], both[n].x, both[n].y);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(c[n], a.high[step], both[n].z, both[n].w);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply(c[n], a.high[step], both[n].x, both[n].y);
      }
    } else {
#pragma unroll
      for (int n = 0; n < 4; ++n) both[n] = b[(j * fragments + n) * 32];
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(c[n], a.high[2 * j], both[n].x, both[n].y);
#pragma unroll
      for (int n = 0; n < 4; ++n) multiply(c[n], a.high[2 * j + 1], both[n].z, both[n].w);
    }
  }
}

// How C is made of the sums.
enum class RowEnd { plain, curve, slope };

// The matrix that the epilogue reads: what is added, or where slopes are taken. Row r of C reads
// its row r / rows.
struct RowEpilogue {
  const float* data;
  int64_t slot, stride;
  Division rows;
};

// A lane's part of the epilogue's matrix, of 16 rows and 64 columns; read ahead, since all lanes
// wait for it otherwise.
struct RowNeighbours {
  float2 values[RowTile::column_fragments][2];

  __device__ void load(const RowEpilogue& epilogue, int slot, int rows, int row, int column,
                       int end_column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = row + 8 * half;
      const float* line = epilogue.data + slot * epilogue.slot +
                          epilogue.rows.quotient(own) * epilogue.stride + column;
#pragma unroll
      for (int n = 0; n < RowTile::column_fragments; ++n) {
        if (own < rows && column + 8 * n < end_column) {
          values[n][half] = *reinterpret_cast<const float2*>(line + 8 * n);
        }
      }
    }
  }
};

template <RowEnd end, class Shape>
__device__ void write_rows(const Product& p, int slot, int row, int column, int end_column,
                           const float* bias, bool has_epilogue, const RowNeighbours& epilogue,
                           const Fragments<RowTile>& sums) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int own = row + 8 * half;
    if (own >= p.rows) break;
    float* const c = p.c.data + slot * p.c.slot + own * p.c.row.stride + column;
    float* const before =
        p.before.data + slot * p.before.slot_stride + own * p.before.stride + column;
#pragma unroll
    for (int n = 0; n < RowTile::column_fragments; ++n) {
      if (column + 8 * n >= end_column) break;
      const float2 b = *reinterpret_cast<const float2*>(bias + 8 * n);
      float2 value = make_float2(sums[0][n][2 * half] + b.x, sums[0][n][2 * half + 1] + b.y);
      const float2 other = epilogue.values[n][half];
      if constexpr (end == RowEnd::plain) {
        if (has_epilogue) value = make_float2(value.x + other.x, value.y + other.y);
      } else if constexpr (end == RowEnd::curve) {
        if (p.before.data) *reinterpret_cast<float2*>(before + 8 * n) = value;
        value = make_float2(Shape::value(value.x), Shape::value(value.y));
      } else {
        value = make_float2(value.x * Shape::slope(other.x), value.y * Shape::slope(other.y));
      }
      *reinterpret_cast<float2*>(c + 8 * n) = value;
    }
  }
}

template <bool exact, RowEnd end, class Shape>
__global__ void __launch_bounds__(row_threads<exact>, 1)
    row_product_kernel(ProductPlan plan, RowGrid grid, RowEpilogue epilogue) {
  const Product& p = plan.product;
  const int slot = blockIdx.y;
  if (plan.steps && plan.steps[slot].samples == 0) return;
  const int column_block = static_cast<int>(blockIdx.x) % grid.column_blocks;
  const int row_block = static_cast<int>(blockIdx.x) / grid.column_blocks;
  const int first_column = column_block * grid.block_columns;
  const int columns = min(grid.block_columns, p.columns - first_column);
  const int fragments = (columns + column_step - 1) / column_step * (column_step / 8);
  auto* const bias = reinterpret_cast<float*>(dynamic_shared());  // [block_columns]
  auto* const packed = reinterpret_cast<float4*>(bias + grid.block_columns);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const float* a = p.a.data + slot * p.a.slot;
  const int tiles = (p.rows + tile_rows - 1) / tile_rows, step = grid.row_blocks * row_warps<exact>;
  int tile = row_block * row_warps<exact> + warp;
  RowChunk next;
  next.load(p, a, tile * tile_rows + g, 4 * t);
  for (int i = threadIdx.x; i < grid.block_columns; i += row_threads<exact>) {
    const bool inside = p.bias && p.bias_rows == 0 && i < columns;
    bias[i] =
        inside ? p.bias[slot * p.bias_slot + plan.bias_column.offset(first_column + i)] : 0.0f;
  }
  pack_matrix<exact>(plan, p.b.data + slot * p.b.slot, first_column, fragments, packed);
  __syncthreads();

  const int chunks = (p.depth + chunk_depth - 1) / chunk_depth;
  // How many packed numbers of a lane, in float4, lie between two chunks of the depth.
  const int chunk_step = chunk_depth / (exact ? 8 : 16) * fragments * 32;
  RowOperand<exact> operand;
#pragma unroll 1
  for (; tile < tiles; tile += step) {
#pragma unroll 1
    for (int first = 0; first < fragments; first += RowTile::column_fragments) {
      const int row = tile * tile_rows + g, column = first_column + 8 * first + 2 * t;
      RowNeighbours neighbours;
      if (epilogue.data) {
        neighbours.load(epilogue, slot, p.rows, row, column, first_column + columns);
      }
      Fragments<RowTile> sums = {};
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        if (first == 0 || chunks > 1) {  // then the next chunk is on its way while this one counts
          operand.set(next);
          const bool more = chunk + 1 < chunks;
          const bool again = chunks > 1 && first + RowTile::column_fragments < fragments;
          next.load(p, a, (tile + (more || again ? 0 : step)) * tile_rows + g,
                    (more ? chunk + 1 : 0) * chunk_depth + 4 * t);
        }
        // The tensor core cuts off what does not fit when it adds, see product_kernel.
        Fragments<RowTile> chunk_sums = {};
        auto& to = exact ? chunk_sums : sums;
        const float4* b = packed + chunk * chunk_step + first * 32 + lane;
        const int depth_left = p.depth - chunk * chunk_depth;
        multiply_chunk<exact>(to[0], operand, b, fragments, depth_left);
        if (first + 4 < fragments) {
          multiply_chunk<exact>(to[0] + 4, operand, b + 4 * 32, fragments, depth_left);
        }
        if constexpr (exact) {
#pragma unroll
          for (int n = 0; n < RowTile::column_fragments; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[0][n][e] += chunk_sums[0][n][e];
          }
        }
      }
      write_rows<end, Shape>(p, slot, row, column, first_column + columns, bias + 8 * first + 2 * t,
                             epilogue.data != nullptr, neighbours, sums);
    }
  }
}

// How many bytes of B a block keeps in shared memory.
int64_t most_bytes() {
  return std::min<int64_t>(200 * 1024, device_limits().shared_bytes - bias_bytes);
}

int64_t column_bytes(const Product& p, Precision precision) {
  return ceil_div(p.depth, 16) * 16 * (precision == Precision::fp32 ? 2 : 1) * sizeof(float);
}

// The columns of a block that fit, fewer where there would be too few blocks; then as many blocks
// of rows as keep all multiprocessors busy to the end. Packing costs a block about `packing` rounds
// of rows.
RowGrid choose_grid(const Product& p, Precision precision) {
  constexpr int at_once = multiprocessors;
  const int warps = precision == Precision::fp32 ? row_warps<true> : row_warps<false>;
  constexpr double packing = 0.4;
  const int64_t steps = ceil_div(p.columns, column_step);
  const int64_t tiles = ceil_div(p.rows, tile_rows), most_blocks = ceil_div(tiles, warps);
  int64_t fitting =
      std::clamp<int64_t>(most_bytes() / (column_bytes(p, precision) * column_step), 1, steps);
  while (fitting > 1 && ceil_div(steps, fitting) * most_blocks * p.slots < at_once) {
    fitting = ceil_div(fitting, 2);
  }
  RowGrid best{static_cast<int32_t>(fitting * column_step),
               static_cast<int32_t>(ceil_div(steps, fitting)), 1};
  double least = 0;
  for (int64_t blocks = 1; blocks <= most_blocks; ++blocks) {
    const int64_t waves = ceil_div(blocks * best.column_blocks * p.slots, at_once);
    const double cost = static_cast<double>(waves) *
                        (packing + static_cast<double>(ceil_div(tiles, blocks * warps)));
    if (blocks > 1 && cost >= least) continue;
    least = cost;
    best.row_blocks = static_cast<int32_t>(blocks);
  }
  return best;
}

RowEpilogue epilogue_of(const Product& p) {
  const Division one(1);
  const auto of = [&](const auto& rows) {
    return RowEpilogue{rows.data, rows.slot_stride, rows.stride, one};
  };
  if (p.slope_at.data) return of(p.slope_at);
  if (p.added.data) return of(p.added);
  if (p.accumulate) return {p.c.data, p.c.slot, p.c.row.stride, one};
  if (p.bias && p.bias_rows != 0) {
    return {p.bias, p.bias_slot, p.bias_stride, Division(p.bias_rows)};
  }
  return {};
}

template <bool exact, RowEnd end, class Shape>
void launch_end(const ProductPlan& plan, const RowGrid& grid, cudaStream_t stream) {
  const auto kernel = row_product_kernel<exact, end, Shape>;
  allow_shared_bytes(kernel, most_bytes() + bias_bytes);
  const Product& p = plan.product;
  const int64_t columns =
      std::min<int64_t>(grid.block_columns, ceil_div(p.columns, column_step) * column_step);
  const size_t bytes = columns * column_bytes(p, exact ? Precision::fp32 : Precision::tf32) +
                       grid.block_columns * sizeof(float);
  launch(kernel, dim3(static_cast<unsigned>(grid.row_blocks * grid.column_blocks), p.slots),
         dim3(row_threads<exact>), bytes, stream, plan, grid, epilogue_of(p));
}

template <bool exact>
void launch_precision(const ProductPlan& plan, const RowGrid& grid, cudaStream_t stream) {
  const Product& p = plan.product;
  if (p.curve == Curve::none) {
    return launch_end<exact, RowEnd::plain, Straight>(plan, grid, stream);
  }
  with_curve(p.curve, [&](auto shape) {
    using Shape = decltype(shape);
    if constexpr (!std::is_same_v<Shape, Straight>) {
      if (p.slope_at.data) {
        launch_end<exact, RowEnd::slope, Shape>(plan, grid, stream);
      } else {
        launch_end<exact, RowEnd::curve, Shape>(plan, grid, stream);
      }
    }
  });
}

template <class T>
bool in_pairs(const Product& p, const Rows<T>& rows) {
  return reinterpret_cast<uintptr_t>(rows.data) % sizeof(float2) == 0 && rows.stride % 2 == 0 &&
         (p.slots == 1 || rows.slot_stride % 2 == 0);
}

// What a kernel here can end with.
bool end_fits(const Product& p) {
  const bool node_bias = p.bias && p.bias_rows != 0;
  const int epilogues = (p.slope_at.data ? 1 : 0) + (p.added.data ? 1 : 0) +
                        (p.accumulate ? 1 : 0) + (node_bias ? 1 : 0);
  const bool curved = p.curve != Curve::none;
  return p.alpha == 1 && epilogues <= 1 && (!curved || p.slope_at.data || epilogues == 0) &&
         (curved || (!p.slope_at.data && !p.before.data)) && (!p.slope_at.data || !p.before.data) &&
         in_pairs(p, p.added) && in_pairs(p, p.slope_at) && in_pairs(p, p.before) &&
         (!node_bias || (p.bias_column.stride == 1 && p.bias_column.group == 0 &&
                         in_pairs(p, Rows<const float>{p.bias, p.bias_slot, p.bias_stride})));
}

}  // namespace

bool row_product_fits(const Product& p, Precision precision) {
  return p.rows >= least_rows && p.outer == 1 && p.inner == 1 && !p.row_sums && p.depth % 4 == 0 &&
         aligned(p, p.a, p.a.column, p.a.row, 4) && p.a.row.group == 0 && p.a.column.group == 0 &&
         p.columns % 2 == 0 && aligned(p, p.c, p.c.column, p.c.row, 2) && p.c.row.group == 0 &&
         p.c.column.group == 0 && end_fits(p) &&
         column_bytes(p, precision) * column_step <= most_bytes();
}

void launch_row_product(const ProductPlan& plan, Precision precision, cudaStream_t stream) {
  const RowGrid grid = choose_grid(plan.product, precision);
  if (precision == Precision::fp32) {
    launch_precision<true>(plan, grid, stream);
  } else {
    launch_precision<false>(plan, grid, stream);
  }
}

}  // namespace posattn::cuda

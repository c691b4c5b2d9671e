#include <algorithm>

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr int warps = 4;  // two by two over the block's tile of C
constexpr int threads = 32 * warps;
constexpr int tile_depth = 32;
constexpr int stages = 3;  // tiles of A and B in shared memory: one computed, two on their way
// Parts of a cut depth: as many as make this many tiles per slot, none shorter than this depth.
constexpr int wanted_tiles = 128;
constexpr int least_part_depth = 512;
static_assert(product_workspace == wanted_tiles * 64 * 64);  // tiles have 64 x 64 elements at most

// One operand: `extent` rows of A (columns of B) times tile_depth, tile after tile. In shared
// memory
//   along_depth: [extent][tile_depth + 4]    for operands contiguous along the depth
//   otherwise:   [tile_depth][extent + 8]    for operands contiguous along rows (columns of B)
// Both paddings spread the 8 x 4 elements that a warp reads for a fragment over all banks.
template <int extent, bool along_depth>
class OperandTile {
 public:
  static constexpr int floats = along_depth ? extent * (tile_depth + 4) : tile_depth * (extent + 8);

  __device__ static int place(int i, int k) {
    return along_depth ? i * (tile_depth + 4) + k : k * (extent + 8) + i;
  }

  // Of elements (first + i, k) with first + i < count and k < depth_end; what lies outside is zero.
  // `aligned`: four contiguous elements may go as one copy.
  __device__ OperandTile(const float* source, const Axis& axis, const Axis& depth_axis, int first,
                         int count, int depth_end, bool aligned)
      : source_(source),
        axis_(axis),
        depth_axis_(depth_axis),
        first_(first),
        count_(count),
        depth_end_(depth_end),
        aligned_(aligned) {
#pragma unroll
    for (int c = 0; c < (along_depth ? chunks : 1); ++c) offsets_[c] = axis.offset(first + i(c));
  }

  // Starts copying the elements from depth k0 on.
  __device__ void load(float* tile, int k0) const {
    if (aligned_ && first_ + extent <= count_ && k0 + tile_depth <= depth_end_) {
      const int64_t depth_offset = depth_axis_.offset(k0 + k(0));
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        copy_async(tile + place(i(c), k(c)),
                   source_ + offsets_[along_depth ? c : 0] +
                       (along_depth ? depth_offset : depth_axis_.offset(k0 + k(c))));
      }
    } else {
#pragma unroll 1
      for (int c = 0; c < chunks; ++c) {
        load_edge(tile + place(i(c), k(c)), first_ + i(c), k0 + k(c));
      }
    }
  }

 private:
  // A thread copies `chunks` times four elements. Along the depth all have one k, otherwise one i.
  static constexpr int chunks = extent * tile_depth / 4 / threads;
  static constexpr int line = (along_depth ? tile_depth : extent) / 4;
  static_assert(threads % line == 0);

  // Four elements, some of which may lie outside.
  __device__ void load_edge(float* to, int index, int depth) const {
    const int last_index = index + (along_depth ? 0 : 3),
              last_depth = depth + (along_depth ? 3 : 0);
    if (aligned_ && last_index < count_ && last_depth < depth_end_) {
      copy_async(to, source_ + axis_.offset(index) + depth_axis_.offset(depth));
      return;
    }
    float values[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = index + (along_depth ? 0 : e), inner = depth + (along_depth ? e : 0);
      values[e] = row < count_ && inner < depth_end_
                      ? source_[axis_.offset(row) + depth_axis_.offset(inner)]
                      : 0.0f;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = values[e];
  }

  __device__ static int i(int chunk) {
    const int number = static_cast<int>(threadIdx.x) + chunk * threads;
    return along_depth ? number / line : number % line * 4;
  }
  __device__ static int k(int chunk) {
    const int number = static_cast<int>(threadIdx.x) + chunk * threads;
    return along_depth ? number % line * 4 : number / line;
  }

  const float* source_;
  const Axis& axis_;
  const Axis& depth_axis_;
  int first_, count_, depth_end_;
  bool aligned_;
  int64_t offsets_[along_depth ? chunks : 1];  // of the thread's i
};

struct Plan {
  Product product;
  int32_t row_tiles, column_tiles, parts, part_depth;
  bool aligned_a, aligned_b;
  const SlotStep* steps;
  float* workspace;
};

// Writes one element of C from the sum of its products.
__device__ void finish(const Product& p, int slot, int64_t c_offset, int row, int column,
                       float sum) {
  float* c = p.c.data + c_offset + p.c.row.offset(row) + p.c.column.offset(column);
  float value = p.alpha * sum;
  if (p.accumulate) value += *c;
  if (p.bias) {
    const int64_t bias_row = p.bias_rows == 0 ? 0 : row / p.bias_rows;
    value += p.bias[slot * p.bias_slot + bias_row * p.bias_stride + column];
  }
  if (p.relu && value < 0) value = 0;  // keeps a NaN
  *c = value;
}

// fp32: each operand is the sum of two tf32 numbers, and three of the four products count; the
// fourth is 2^-22 of the whole at most, since the first number is rounded to nearest. tf32:
// operands are rounded.
template <bool exact>
__device__ inline float high_part(float x) {
  return exact ? tf32_part(round_to_tf32(x)) : round_to_tf32(x);
}

template <bool exact, int row_fragments, int column_fragments>
__device__ inline void multiply(float (&c)[row_fragments][column_fragments][4],
                                float (&a)[row_fragments][4], float (&b)[column_fragments][2]) {
  float a_low[row_fragments][4], b_low[column_fragments][2];
#pragma unroll
  for (int m = 0; m < row_fragments; ++m) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float high = high_part<exact>(a[m][e]);
      a_low[m][e] = a[m][e] - high;
      a[m][e] = high;
    }
  }
#pragma unroll
  for (int n = 0; n < column_fragments; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float high = high_part<exact>(b[n][e]);
      b_low[n][e] = b[n][e] - high;
      b[n][e] = high;
    }
  }
  const auto add = [&](const float(&x)[row_fragments][4], const float(&y)[column_fragments][2]) {
#pragma unroll
    for (int m = 0; m < row_fragments; ++m) {
#pragma unroll
      for (int n = 0; n < column_fragments; ++n) {
        mma_tf32(c[m][n], x[m][0], x[m][1], x[m][2], x[m][3], y[n][0], y[n][1]);
      }
    }
  };
  if constexpr (exact) {
    add(a_low, b);
    add(a, b_low);
  }
  add(a, b);
}

template <bool exact, int row_fragments, int column_fragments, bool a_along_depth,
          bool b_along_depth>
__global__ void __launch_bounds__(threads, 4) product_kernel(Plan plan) {
  constexpr int tile_rows = 2 * 16 * row_fragments, tile_columns = 2 * 8 * column_fragments;
  using TileA = OperandTile<tile_rows, a_along_depth>;
  using TileB = OperandTile<tile_columns, b_along_depth>;
  const Product& p = plan.product;

  int64_t block = blockIdx.x;
  const auto next = [&](int count) {
    const int index = static_cast<int>(block % count);
    block /= count;
    return index;
  };
  const int column_tile = next(plan.column_tiles), row_tile = next(plan.row_tiles);
  const int part = next(plan.parts), inner = next(p.inner), outer = next(p.outer);
  const int slot = static_cast<int>(block);
  if (plan.steps && plan.steps[slot].samples == 0) return;

  const float* a = p.a.data + slot * p.a.slot + outer * p.a.outer + inner * p.a.inner;
  const float* b = p.b.data + slot * p.b.slot + outer * p.b.outer + inner * p.b.inner;
  const int first_row = row_tile * tile_rows, first_column = column_tile * tile_columns;
  const int depth_begin = part * plan.part_depth;
  const int depth_end = min(p.depth, depth_begin + plan.part_depth);
  const int depth_tiles = (depth_end - depth_begin + tile_depth - 1) / tile_depth;
  const TileA operand_a(a, p.a.row, p.a.column, first_row, p.rows, depth_end, plan.aligned_a);
  const TileB operand_b(b, p.b.column, p.b.row, first_column, p.columns, depth_end, plan.aligned_b);

  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const auto load = [&](int tile) {
    if (tile < depth_tiles) {
      float* to = shared + tile % stages * (TileA::floats + TileB::floats);
      const int k0 = depth_begin + tile * tile_depth;
      operand_a.load(to, k0);
      operand_b.load(to + TileA::floats, k0);
    }
    commit_copies();
  };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp / 2 * 16 * row_fragments, warp_column = warp % 2 * 8 * column_fragments;
  // A warp may lie outside of a small C: it only helps to copy.
  const bool idle = first_row + warp_row >= p.rows || first_column + warp_column >= p.columns;
  float c[row_fragments][column_fragments][4] = {};
  for (int tile = 1 - stages; tile < depth_tiles; ++tile) {  // the first rounds only copy
    if (tile >= 0) {
      wait_copies<stages - 2>();
      __syncthreads();
    }
    load(tile + stages - 1);  // into the buffer that all warps have left
    const float* tile_a = shared + tile % stages * (TileA::floats + TileB::floats);
    const float* tile_b = tile_a + TileA::floats;
    if (tile < 0 || idle) continue;
    const int left = depth_end - depth_begin - tile * tile_depth;
#pragma unroll
    for (int step = 0; step < tile_depth; step += 8) {
      if (step >= left) break;
      const int k = step + t;
      float fragment_a[row_fragments][4], fragment_b[column_fragments][2];
#pragma unroll
      for (int m = 0; m < row_fragments; ++m) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = warp_row + 16 * m + g + 8 * (e & 1);
          fragment_a[m][e] = tile_a[TileA::place(row, k + 2 * (e & 2))];
        }
      }
#pragma unroll
      for (int n = 0; n < column_fragments; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          fragment_b[n][e] = tile_b[TileB::place(warp_column + 8 * n + g, k + 4 * e)];
        }
      }
      multiply<exact>(c, fragment_a, fragment_b);
    }
  }

  const int64_t c_offset = slot * p.c.slot + outer * p.c.outer + inner * p.c.inner;
  // Parts lie [slot][part][outer][inner][rows][columns].
  const int64_t matrix = ((static_cast<int64_t>(part) * p.outer + outer) * p.inner + inner) *
                         p.rows * static_cast<int64_t>(p.columns);
  float* parts = plan.workspace + slot * product_workspace + matrix;
#pragma unroll
  for (int m = 0; m < row_fragments; ++m) {
#pragma unroll
    for (int n = 0; n < column_fragments; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = first_row + warp_row + 16 * m + g + 8 * (e / 2);
        const int column = first_column + warp_column + 8 * n + 2 * t + e % 2;
        if (row >= p.rows || column >= p.columns) continue;
        if (plan.parts == 1) {
          finish(p, slot, c_offset, row, column, c[m][n][e]);
        } else {
          parts[static_cast<int64_t>(row) * p.columns + column] = c[m][n][e];
        }
      }
    }
  }
}

// Adds the parts of a cut product in order.
__global__ void __launch_bounds__(256) add_parts_kernel(Plan plan) {
  const Product& p = plan.product;
  const int slot = blockIdx.y;
  if (plan.steps && plan.steps[slot].samples == 0) return;
  const int64_t size = static_cast<int64_t>(p.rows) * p.columns, count = size * p.outer * p.inner;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float* parts = plan.workspace + slot * product_workspace + i;
  float sum = 0;
  for (int part = 0; part < plan.parts; ++part) sum += parts[part * count];
  const int64_t matrix = i / size, outer = matrix / p.inner, inner = matrix % p.inner;
  finish(p, slot, slot * p.c.slot + outer * p.c.outer + inner * p.c.inner,
         static_cast<int>(i % size / p.columns), static_cast<int>(i % p.columns), sum);
}

bool four_apart(const Axis& axis) {
  return axis.stride % 4 == 0 && (axis.group == 0 || axis.group_stride % 4 == 0);
}
bool contiguous_fours(const Axis& axis) {
  return axis.stride == 1 &&
         (axis.group == 0 || (axis.group % 4 == 0 && axis.group_stride % 4 == 0));
}

// Whether four elements along `contiguous` may be copied as one.
bool aligned(const Product& p, const Matrix<const float>& matrix, const Axis& contiguous,
             const Axis& other) {
  return reinterpret_cast<uintptr_t>(matrix.data) % 16 == 0 && contiguous_fours(contiguous) &&
         four_apart(other) && (p.slots == 1 || matrix.slot % 4 == 0) &&
         (p.outer == 1 || matrix.outer % 4 == 0) && (p.inner == 1 || matrix.inner % 4 == 0);
}

template <bool exact, int row_fragments, int column_fragments, bool a_along_depth,
          bool b_along_depth>
void launch_product(const Plan& plan, cudaStream_t stream) {
  const auto kernel =
      product_kernel<exact, row_fragments, column_fragments, a_along_depth, b_along_depth>;
  constexpr size_t bytes = sizeof(float) * stages *
                           (OperandTile<32 * row_fragments, a_along_depth>::floats +
                            OperandTile<16 * column_fragments, b_along_depth>::floats);
  if constexpr (bytes > 48 * 1024) {
    static const bool allowed = (allow_shared_bytes(kernel, bytes), true);
    static_cast<void>(allowed);
  }
  const Product& p = plan.product;
  const int64_t blocks =
      int64_t{1} * plan.row_tiles * plan.column_tiles * plan.parts * p.inner * p.outer * p.slots;
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), bytes, stream, plan);
}

template <bool exact, int row_fragments, int column_fragments>
void launch_tiles(Plan plan, cudaStream_t stream) {
  const Product& p = plan.product;
  plan.row_tiles = static_cast<int32_t>(ceil_div(p.rows, 32 * row_fragments));
  plan.column_tiles = static_cast<int32_t>(ceil_div(p.columns, 16 * column_fragments));
  const int64_t tiles = int64_t{1} * plan.row_tiles * plan.column_tiles * p.outer * p.inner;
  const int64_t most = std::max<int64_t>(1, wanted_tiles / tiles);
  const int64_t parts = std::clamp<int64_t>(p.depth / least_part_depth, 1, most);
  plan.part_depth =
      static_cast<int32_t>(ceil_div(ceil_div(p.depth, parts), tile_depth) * tile_depth);
  plan.parts = static_cast<int32_t>(std::max<int64_t>(1, ceil_div(p.depth, plan.part_depth)));

  const bool a_along_depth = p.a.column.stride == 1, b_along_depth = p.b.row.stride == 1;
  plan.aligned_a =
      a_along_depth ? aligned(p, p.a, p.a.column, p.a.row) : aligned(p, p.a, p.a.row, p.a.column);
  plan.aligned_b =
      b_along_depth ? aligned(p, p.b, p.b.row, p.b.column) : aligned(p, p.b, p.b.column, p.b.row);
  if (a_along_depth && b_along_depth) {
    launch_product<exact, row_fragments, column_fragments, true, true>(plan, stream);
  } else if (a_along_depth) {
    launch_product<exact, row_fragments, column_fragments, true, false>(plan, stream);
  } else if (b_along_depth) {
    launch_product<exact, row_fragments, column_fragments, false, true>(plan, stream);
  } else {
    launch_product<exact, row_fragments, column_fragments, false, false>(plan, stream);
  }
  if (plan.parts == 1) return;
  const int64_t count = int64_t{1} * p.rows * p.columns * p.outer * p.inner;
  launch(add_parts_kernel, dim3(static_cast<unsigned>(ceil_div(count, 256)), p.slots), dim3(256), 0,
         stream, plan);
}

template <bool exact>
void launch_precision(const Plan& plan, cudaStream_t stream) {
  // Small matrices (attention between few nodes) waste less of a small tile.
  if (plan.product.rows <= 32 && plan.product.columns <= 32) {
    launch_tiles<exact, 1, 2>(plan, stream);
  } else {
    launch_tiles<exact, 2, 4>(plan, stream);
  }
}

}  // namespace

void enqueue_product(const Product& product, Precision precision, const SlotStep* steps,
                     float* workspace, cudaStream_t stream) {
  Plan plan{};
  plan.product = product;
  plan.steps = steps;
  plan.workspace = workspace;
  if (precision == Precision::fp32) {
    launch_precision<true>(plan, stream);
  } else {
    launch_precision<false>(plan, stream);
  }
}

}  // namespace posattn::cuda

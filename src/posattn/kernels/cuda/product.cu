#include <algorithm>

#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/product_kernel.cuh"
#include "posattn/kernels/cuda/product_plan.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

// Linear maps of many rows and their gradients; products of which C has few columns (scores, the
// decoder); products of which C has few rows (mixing the nodes' values): for one sample's head, and
// for all samples at once.
using LargeTile = Tiling<2, 2, 2, 4, 32>;
using NarrowTile = Tiling<1, 1, 1, 2, 32>;
using FlatTile = Tiling<1, 1, 1, 4, 16>;
using WideTile = Tiling<1, 1, 1, 8, 16>;

// A cut depth has no part shorter than this, but for the last one. Its parts make this many tiles
// per slot at most, and fit the workspace.
constexpr int64_t least_part_depth = 192;
template <class Tile>
constexpr int64_t most_tiles = std::min<int64_t>(512,
                                                 product_workspace / (Tile::rows * Tile::columns));

constexpr int part_elements = 32, part_lanes = 8;  // of a block

// Carries out the epilogue of one element.
__device__ void write_element(const Product& p, int slot, int matrix, int row, int column,
                              float sum) {
  float* place = p.c.data + slot * p.c.slot + matrix / p.inner * p.c.outer +
                 matrix % p.inner * p.c.inner + p.c.row.offset(row) + p.c.column.offset(column);
  const auto same_place = [&](const auto& m) {
    return m.data + slot * m.slot_stride + row * m.stride + column;
  };
  float value = p.alpha * sum;
  if (p.accumulate) value += *place;
  if (p.bias) {
    const int bias_row = p.bias_rows == 0 ? 0 : row / p.bias_rows;
    value += p.bias[slot * p.bias_slot + bias_row * p.bias_stride + p.bias_column.offset(column)];
  }
  if (p.added.data) value += *same_place(p.added);
  if (p.before.data) *same_place(p.before) = value;
  *place = p.slope_at.data ? value * curve_slope(p.curve, *same_place(p.slope_at))
                           : curve_value(p.curve, value);
}

// Adds the parts [part][outer][inner][rows][columns] of a cut product, and [rows] sums behind each
// where it has those: thread (lane, elements) every eighth part of `width` neighbours, then the
// lanes in order.
template <int width>
__global__ void __launch_bounds__(part_elements* part_lanes)
    add_parts_kernel(Product p, int32_t parts, int32_t part_stride, const SlotStep* steps,
                     const float* workspace) {
  using Neighbours = std::conditional_t<width == 4, float4, float>;
  constexpr int block_elements = part_elements * width;
  __shared__ Neighbours partial[part_lanes][part_elements];
  const int slot = blockIdx.y, lane = threadIdx.x / part_elements;
  if (rests(steps, slot)) return;
  const int size = p.rows * p.columns, matrices = size * p.outer * p.inner;
  const int count = matrices + (p.row_sums ? p.rows : 0);
  const int first = static_cast<int>(blockIdx.x) * block_elements;
  const int own = threadIdx.x % part_elements;
  Neighbours sum = {};
  if (first + own * width < count) {
    const float* part = workspace + slot * product_workspace + first + own * width;
#pragma unroll 8
    for (int k = lane; k < parts; k += part_lanes) {
      const auto more = *reinterpret_cast<const Neighbours*>(part + k * part_stride);
      if constexpr (width == 4) {
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
      } else {
        sum += more;
      }
    }
  }
  partial[lane][own] = sum;
  __syncthreads();
  const auto* sums = reinterpret_cast<const float*>(partial);
  const int i = first + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= block_elements || i >= count) return;
  float total = sums[threadIdx.x];
  for (int other = 1; other < part_lanes; ++other) {
    total += sums[other * block_elements + threadIdx.x];
  }
  if (i < matrices) {
    write_element(p, slot, i / size, i % size / p.columns, i % p.columns, total);
  } else {
    p.row_sums[slot * p.row_sums_slot + p.row_sums_row.offset(i - matrices)] = total;
  }
}

void add_parts(const Product& product, int32_t parts, int64_t part_stride, const SlotStep* steps,
               const float* workspace, cudaStream_t stream) {
  const int64_t count =
      int64_t{1} * product.rows * product.columns * product.outer * product.inner +
      (product.row_sums ? product.rows : 0);
  const bool fours = count % 4 == 0 && part_stride % 4 == 0;
  launch(fours ? add_parts_kernel<4> : add_parts_kernel<1>,
         blocks(count, part_elements * (fours ? 4 : 1), product.slots),
         dim3(part_elements * part_lanes), 0, stream, product, parts,
         static_cast<int32_t>(part_stride), steps, workspace);
}

// Each row of A has a block.
__global__ void __launch_bounds__(block_threads) row_sums_kernel(Product p, const SlotStep* steps) {
  const int row = blockIdx.x, slot = blockIdx.y;
  if (rests(steps, slot)) return;
  const float* a = p.a.data + slot * p.a.slot + p.a.row.offset(row);
  float sum = 0;
  for (int k = threadIdx.x; k < p.depth; k += block_threads) sum += a[p.a.column.offset(k)];
  sum = block_sum(sum);
  if (threadIdx.x == 0) p.row_sums[slot * p.row_sums_slot + p.row_sums_row.offset(row)] = sum;
}

// Whether DirectCopies fit, and how far a stage lies from the next then.
template <class Operand>
bool direct(const Axis& axis, const Axis& depth, int64_t& advance) {
  advance = depth.group == 0 ? Operand::depth * depth.stride
                             : Operand::depth / depth.group * depth.group_stride;
  if (!Operand::along_depth) return depth.group == 0;
  return axis.group % Operand::extent == 0 &&
         (depth.group == 0 || Operand::depth % depth.group == 0);
}

template <class Tile, bool exact, bool a_along_depth, bool b_along_depth, bool is_direct>
void launch_kernel(const ProductPlan& plan, cudaStream_t stream) {
  const auto kernel = product_kernel<Tile, exact, a_along_depth, b_along_depth, is_direct>;
  constexpr size_t stage_bytes = Tile::teams * sizeof(float) *
                                 (Tile::template OperandA<a_along_depth>::floats +
                                  Tile::template OperandB<b_along_depth>::floats);
  if constexpr (product_stages * stage_bytes > 48 * 1024) {
    static const bool allowed = (allow_shared_bytes(kernel, product_stages * stage_bytes), true);
    static_cast<void>(allowed);
  }
  const dim3 grid(static_cast<unsigned>(ceil_div(plan.tiles, Tile::teams)), plan.product.slots);
  launch(kernel, grid, dim3(product_threads), plan.stages * stage_bytes, stream, plan);
}

template <class Tile, bool exact, bool a_along_depth, bool b_along_depth>
void launch_layout(ProductPlan plan, cudaStream_t stream) {
  const Product& p = plan.product;
  plan.aligned_a = a_along_depth ? aligned(p, p.a, p.a.column, p.a.row, 4)
                                 : aligned(p, p.a, p.a.row, p.a.column, 4);
  plan.aligned_b = b_along_depth ? aligned(p, p.b, p.b.row, p.b.column, 4)
                                 : aligned(p, p.b, p.b.column, p.b.row, 4);
  using OperandA = typename Tile::template OperandA<a_along_depth>;
  using OperandB = typename Tile::template OperandB<b_along_depth>;
  const bool direct_a = direct<OperandA>(p.a.row, p.a.column, plan.advance_a);
  const bool direct_b = direct<OperandB>(p.b.column, p.b.row, plan.advance_b);
  if (plan.aligned_a && plan.aligned_b && direct_a && direct_b) {
    launch_kernel<Tile, exact, a_along_depth, b_along_depth, true>(plan, stream);
  } else {
    launch_kernel<Tile, exact, a_along_depth, b_along_depth, false>(plan, stream);
  }
}

template <class Tile, bool exact>
void launch_tiles(ProductPlan plan, float* workspace, cudaStream_t stream) {
  Product& p = plan.product;
  const Product whole = p;
  const int64_t row_tiles = ceil_div(p.rows, Tile::rows);
  const int64_t column_tiles = ceil_div(p.columns, Tile::columns);
  const int64_t tiles = row_tiles * column_tiles * p.outer * p.inner;
  plan.row_tiles = Division(row_tiles);
  plan.column_tiles = Division(column_tiles);
  const int64_t most_parts = std::max<int64_t>(1, most_tiles<Tile> / tiles);
  const int64_t part_depth = p.depth < 2 * least_part_depth
                                 ? p.depth
                                 : std::max(least_part_depth, ceil_div(p.depth, most_parts));
  plan.part_depth = static_cast<int32_t>(ceil_div(part_depth, Tile::depth) * Tile::depth);
  plan.parts = static_cast<int32_t>(std::max<int64_t>(1, ceil_div(p.depth, plan.part_depth)));
  plan.tiles = static_cast<int32_t>(tiles * plan.parts);
  plan.stages = std::min(product_stages, plan.part_depth / Tile::depth);
  const int64_t size = int64_t{1} * p.rows * p.columns;
  if (plan.parts > 1) {
    plan.part_stride = p.outer * p.inner * size;
    p.c = row_major(workspace, p.columns, product_workspace, p.inner * size, size);
    p.alpha = 1;  // the epilogue comes when the parts are added
    p.accumulate = false;
    p.bias = nullptr;
    p.added = p.slope_at = {};
    p.before = {};
    p.curve = Curve::none;
  }
  plan.c_row = AxisIndex(p.c.row);
  plan.c_column = AxisIndex(p.c.column);
  plan.paired = p.columns % 2 == 0 && aligned(p, p.c, p.c.column, p.c.row, 2);

  // An operand that is contiguous along no axis goes element by element, and so does B if it alone
  // is contiguous along the depth: it has one column where a model has that.
  const bool a_along_depth = p.a.column.stride == 1, b_along_depth = p.b.row.stride == 1;
  if (!a_along_depth) {
    launch_layout<Tile, exact, false, false>(plan, stream);
  } else if (b_along_depth) {
    launch_layout<Tile, exact, true, true>(plan, stream);
  } else {
    launch_layout<Tile, exact, true, false>(plan, stream);
  }
  if (plan.parts > 1) {
    add_parts(whole, plan.parts, plan.part_stride, plan.steps, workspace, stream);
  }
}

template <bool exact>
void launch_precision(const ProductPlan& plan, float* workspace, cudaStream_t stream) {
  if (plan.product.columns <= NarrowTile::columns) {
    launch_tiles<NarrowTile, exact>(plan, workspace, stream);
  } else if (plan.product.rows <= 2 * FlatTile::rows) {
    if (plan.product.columns <= FlatTile::columns) {
      launch_tiles<FlatTile, exact>(plan, workspace, stream);
    } else {
      launch_tiles<WideTile, exact>(plan, workspace, stream);
    }
  } else {
    launch_tiles<LargeTile, exact>(plan, workspace, stream);
  }
}

// Without groups that change nothing, which cost divisions, and without the stride of an axis of
// one element, which might not be a multiple of four.
void simplify(Axis& axis, int32_t extent) {
  if (axis.group >= extent || axis.group_stride == axis.group * axis.stride) axis.group = 0;
  if (extent == 1) axis.stride = 0;
}

void launch_deep(ProductPlan& plan, Precision precision, float* workspace, cudaStream_t stream) {
  const Product& p = plan.product;
  plan.part_depth = deep_part_depth(p);
  plan.parts = static_cast<int32_t>(ceil_div(p.depth, plan.part_depth));
  launch_deep_product(plan, precision, workspace, stream);
  add_parts(p, plan.parts, deep_part_floats(p), plan.steps, workspace, stream);
}

}  // namespace

void enqueue_product(const Product& product, Precision precision, const SlotStep* steps,
                     float* workspace, cudaStream_t stream) {
  ProductPlan plan{};
  plan.product = product;
  for (Axis* axis : {&plan.product.a.row, &plan.product.c.row}) simplify(*axis, product.rows);
  for (Axis* axis : {&plan.product.a.column, &plan.product.b.row}) simplify(*axis, product.depth);
  for (Axis* axis : {&plan.product.b.column, &plan.product.c.column}) {
    simplify(*axis, product.columns);
  }
  const Product& p = plan.product;
  plan.a_row = AxisIndex(p.a.row);
  plan.a_column = AxisIndex(p.a.column);
  plan.b_row = AxisIndex(p.b.row);
  plan.b_column = AxisIndex(p.b.column);
  plan.inner = Division(p.inner);
  plan.outer = Division(p.outer);
  plan.bias_rows = Division(p.bias_rows);
  plan.bias_column = AxisIndex(p.bias_column);
  plan.steps = steps;
  if (deep_product_fits(p)) return launch_deep(plan, precision, workspace, stream);
  if (p.row_sums) {
    launch(row_sums_kernel, dim3(p.rows, p.slots), dim3(block_threads), 0, stream, p, steps);
    plan.product.row_sums = nullptr;
  }
  if (row_product_fits(p, precision)) return launch_row_product(plan, precision, stream);
  if (precision == Precision::fp32) {
    launch_precision<true>(plan, workspace, stream);
  } else {
    launch_precision<false>(plan, workspace, stream);
  }
}

}  // namespace posattn::cuda

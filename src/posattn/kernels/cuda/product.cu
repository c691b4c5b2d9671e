#include <algorithm>

#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/product_kernel.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

// Linear maps of many rows and their gradients; products of which C has few columns (scores, the
// decoder); products of which C has few rows (mixing the nodes' values).
using LargeTile = Tiling<2, 2, 2, 4, 32>;
using NarrowTile = Tiling<1, 1, 1, 2, 32>;
using FlatTile = Tiling<1, 1, 1, 4, 16>;

// A cut depth has no part shorter than this. Its parts make this many tiles per slot at most, and
// fit the workspace.
constexpr int64_t least_part_depth = 256;
template <class Tile>
constexpr int64_t most_tiles = std::min<int64_t>(512,
                                                 product_workspace / (Tile::rows * Tile::columns));

constexpr int part_elements = 32, part_lanes = 8;  // of a block

// Adds the parts of a cut product: thread (lane, element) every eighth part, then the lanes in
// order.
__global__ void __launch_bounds__(part_elements* part_lanes) add_parts_kernel(ProductPlan plan) {
  __shared__ float partial[part_lanes][part_elements];
  const Product& p = plan.product;
  const int slot = blockIdx.y, lane = threadIdx.x / part_elements;
  if (plan.steps && plan.steps[slot].samples == 0) return;
  const int size = p.rows * p.columns, count = size * p.outer * p.inner;  // of the workspace
  const int i = static_cast<int>(blockIdx.x) * part_elements + threadIdx.x % part_elements;
  float sum = 0;
  if (i < count) {
    const float* parts = plan.workspace + slot * product_workspace + i;
#pragma unroll 8
    for (int part = lane; part < plan.parts; part += part_lanes) sum += parts[part * count];
  }
  partial[lane][threadIdx.x % part_elements] = sum;
  __syncthreads();
  if (lane != 0 || i >= count) return;
  for (int other = 1; other < part_lanes; ++other) sum += partial[other][threadIdx.x];
  const int matrix = i / size, row = i % size / p.columns, column = i % p.columns;
  float* place = p.c.data + slot * p.c.slot + matrix / p.inner * p.c.outer +
                 matrix % p.inner * p.c.inner + p.c.row.offset(row) + p.c.column.offset(column);
  const float* bias = bias_of(p, slot, row);
  *place = finished(p, sum, p.accumulate ? *place : 0.0f, bias ? bias + column : nullptr);
}

template <class T>
bool batch_apart(const Product& p, const Matrix<T>& matrix, int elements) {
  return reinterpret_cast<uintptr_t>(matrix.data) % (elements * sizeof(float)) == 0 &&
         (p.slots == 1 || matrix.slot % elements == 0) &&
         (p.outer == 1 || matrix.outer % elements == 0) &&
         (p.inner == 1 || matrix.inner % elements == 0);
}

// Whether the `count` numbers along `contiguous` are whole aligned groups of `elements` in memory.
template <class T>
bool aligned(const Product& p, const Matrix<T>& matrix, const Axis& contiguous, const Axis& other,
             int64_t count, int elements) {
  return count % elements == 0 && batch_apart(p, matrix, elements) && contiguous.stride == 1 &&
         (contiguous.group == 0 ||
          (contiguous.group % elements == 0 && contiguous.group_stride % elements == 0)) &&
         other.stride % elements == 0 && (other.group == 0 || other.group_stride % elements == 0);
}

template <class Tile, bool exact, bool a_along_depth, bool b_along_depth>
void launch_product(ProductPlan plan, cudaStream_t stream) {
  const Product& p = plan.product;
  plan.aligned_a = a_along_depth ? aligned(p, p.a, p.a.column, p.a.row, p.depth, 4)
                                 : aligned(p, p.a, p.a.row, p.a.column, p.rows, 4);
  plan.aligned_b = b_along_depth ? aligned(p, p.b, p.b.row, p.b.column, p.depth, 4)
                                 : aligned(p, p.b, p.b.column, p.b.row, p.columns, 4);
  const auto kernel = product_kernel<Tile, exact, a_along_depth, b_along_depth>;
  constexpr size_t stage_bytes = Tile::teams * sizeof(float) *
                                 (Tile::template OperandA<a_along_depth>::floats +
                                  Tile::template OperandB<b_along_depth>::floats);
  if constexpr (product_stages * stage_bytes > 48 * 1024) {
    static const bool allowed = (allow_shared_bytes(kernel, product_stages * stage_bytes), true);
    static_cast<void>(allowed);
  }
  const dim3 grid(static_cast<unsigned>(ceil_div(plan.tiles, Tile::teams)), p.slots);
  launch(kernel, grid, dim3(product_threads), plan.stages * stage_bytes, stream, plan);
}

template <class Tile, bool exact>
void launch_tiles(ProductPlan plan, cudaStream_t stream) {
  const Product& p = plan.product;
  plan.row_tiles = static_cast<int32_t>(ceil_div(p.rows, Tile::rows));
  plan.column_tiles = static_cast<int32_t>(ceil_div(p.columns, Tile::columns));
  const int64_t tiles = int64_t{1} * plan.row_tiles * plan.column_tiles * p.outer * p.inner;
  const int64_t most_parts = std::max<int64_t>(1, most_tiles<Tile> / tiles);
  const int64_t parts = std::clamp<int64_t>(p.depth / least_part_depth, 1, most_parts);
  plan.part_depth =
      static_cast<int32_t>(ceil_div(ceil_div(p.depth, parts), Tile::depth) * Tile::depth);
  plan.parts = static_cast<int32_t>(std::max<int64_t>(1, ceil_div(p.depth, plan.part_depth)));
  plan.tiles = static_cast<int32_t>(tiles * plan.parts);
  plan.stages = std::min(product_stages, plan.part_depth / Tile::depth);
  plan.paired =
      p.columns % 2 == 0 && (plan.parts > 1 || aligned(p, p.c, p.c.column, p.c.row, p.columns, 2));

  // An operand that is contiguous along no axis goes element by element, and so does A if it alone
  // is contiguous along the rows, which no model has.
  const bool a_along_depth = p.a.column.stride == 1, b_along_depth = p.b.row.stride == 1;
  if (b_along_depth) {
    launch_product<Tile, exact, true, true>(plan, stream);
  } else if (a_along_depth) {
    launch_product<Tile, exact, true, false>(plan, stream);
  } else {
    launch_product<Tile, exact, false, false>(plan, stream);
  }
  if (plan.parts == 1) return;
  const int64_t count = int64_t{1} * p.rows * p.columns * p.outer * p.inner;
  launch(add_parts_kernel, dim3(static_cast<unsigned>(ceil_div(count, part_elements)), p.slots),
         dim3(part_elements * part_lanes), 0, stream, plan);
}

template <bool exact>
void launch_precision(const ProductPlan& plan, cudaStream_t stream) {
  if (plan.product.columns <= NarrowTile::columns) {
    launch_tiles<NarrowTile, exact>(plan, stream);
  } else if (plan.product.rows <= 2 * FlatTile::rows) {
    launch_tiles<FlatTile, exact>(plan, stream);
  } else {
    launch_tiles<LargeTile, exact>(plan, stream);
  }
}

// Without groups that change nothing, which cost divisions, and without the stride of an axis of
// one element, which might not be a multiple of four.
void simplify(Axis& axis, int32_t extent) {
  if (axis.group >= extent || axis.group_stride == axis.group * axis.stride) axis.group = 0;
  if (extent == 1) axis.stride = 0;
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
  plan.steps = steps;
  plan.workspace = workspace;
  if (precision == Precision::fp32) {
    launch_precision<true>(plan, stream);
  } else {
    launch_precision<false>(plan, stream);
  }
}

}  // namespace posattn::cuda

// What the kernels of a product share: its plan, the splitting of operands, the epilogue.
#pragma once

#include <cuda_runtime.h>

#include "posattn/kernels/cuda/curve.cuh"
#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/product_index.cuh"

namespace posattn::cuda {

struct ProductPlan {
  Product product;  // where C is cut into parts: C is the first part, without an epilogue
  AxisIndex a_row, a_column, b_row, b_column, c_row, c_column, bias_column;
  Division column_tiles, row_tiles, inner, outer, bias_rows;
  int32_t parts, part_depth;
  int64_t part_stride;
  int32_t tiles;                 // of one slot, parts counted
  int32_t stages;                // in shared memory
  int64_t advance_a, advance_b;  // from a stage to the next, see DirectCopies
  bool aligned_a, aligned_b;
  bool paired;  // two columns of C are one aligned float2
  const SlotStep* steps;
};

// Whether numbers along `contiguous`, `elements` at a time, are aligned in memory.
template <class T>
bool aligned(const Product& p, const Matrix<T>& matrix, const Axis& contiguous, const Axis& other,
             int elements) {
  return reinterpret_cast<uintptr_t>(matrix.data) % (elements * sizeof(float)) == 0 &&
         (p.slots == 1 || matrix.slot % elements == 0) &&
         (p.outer == 1 || matrix.outer % elements == 0) &&
         (p.inner == 1 || matrix.inner % elements == 0) && contiguous.stride == 1 &&
         (contiguous.group == 0 ||
          (contiguous.group % elements == 0 && contiguous.group_stride % elements == 0)) &&
         other.stride % elements == 0 && (other.group == 0 || other.group_stride % elements == 0);
}

// fp32: each operand is the sum of two tf32 numbers, and three of the four products count; the
// fourth is 2^-22 of the whole at most, since the first number is rounded to nearest. tf32:
// operands are rounded. (A NaN may be lost in the first of two numbers: the second is one then.)
template <bool exact>
__device__ inline void split(float& x, float& low) {
  const float high =
      exact ? tf32_part(__uint_as_float(__float_as_uint(x) + 0x1000u)) : round_to_tf32(x);
  low = x - high;
  x = high;
}

// Holds a warp's fragments of C.
template <class Tile>
using Fragments = float[Tile::row_fragments][Tile::column_fragments][4];

// The epilogue: writes the warp's part of a tile, whose first element is (first_row, first_column),
// to a matrix, up to `end_column`. A lane has rows row + 8i and columns column + 8n and column + 8n
// + 1.
template <class Tile>
__device__ inline void write_tile(const ProductPlan& plan, float* to, int slot, int first_row,
                                  int first_column, int end_column, const Fragments<Tile>& c) {
  const Product& p = plan.product;
  const int lane = threadIdx.x % 32, row = first_row + lane / 4;
  const int column = first_column + lane % 4 * 2;
  const int rows_left = p.rows - row, columns_left = end_column - column;
  constexpr int rows = 2 * Tile::row_fragments;
  float* lines[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i) lines[i] = to + plan.c_row.offset(row + 8 * i);
  const float* const bias = p.bias == nullptr ? nullptr : p.bias + slot * p.bias_slot;
  // Finds an element of a row-major matrix of the epilogue.
  const auto line_of = [&](const auto& m, int i) {
    return m.data + slot * m.slot_stride + (row + 8 * i) * m.stride + column;
  };
#pragma unroll
  for (int n = 0; n < Tile::column_fragments; ++n) {
    if (8 * n >= columns_left) break;
    const bool odd = 8 * n + 1 < columns_left;  // exists
    const int64_t offset = plan.c_column.offset(column + 8 * n);
    const int64_t step = plan.paired ? 1 : plan.c_column.offset(column + 8 * n + 1) - offset;
    float2 values[rows];
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const float* sums = c[i / 2][n] + i % 2 * 2;
      values[i] = make_float2(p.alpha * sums[0], p.alpha * sums[1]);
    }
    const auto add = [&](int i, const float* place, int64_t to_odd) {
      if (8 * i < rows_left) values[i].x += place[0];
      if (8 * i < rows_left && odd) values[i].y += place[to_odd];
    };
    if (p.accumulate) {
#pragma unroll
      for (int i = 0; i < rows; ++i) add(i, lines[i] + offset, step);
    }
    if (bias) {
      const float* even = bias + plan.bias_column.offset(column + 8 * n);
      const int64_t to_odd =
          odd ? bias + plan.bias_column.offset(column + 8 * n + 1) - even : int64_t{0};
      if (p.bias_rows == 0) {
        const float even_bias = even[0], odd_bias = even[to_odd];
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          values[i].x += even_bias;
          values[i].y += odd_bias;
        }
      } else {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          add(i, even + plan.bias_rows.quotient(row + 8 * i) * p.bias_stride, to_odd);
        }
      }
    }
    if (p.added.data) {
#pragma unroll
      for (int i = 0; i < rows; ++i) add(i, line_of(p.added, i) + 8 * n, 1);
    }
    if (p.before.data) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        float* place = line_of(p.before, i) + 8 * n;
        if (8 * i < rows_left) place[0] = values[i].x;
        if (8 * i < rows_left && odd) place[1] = values[i].y;
      }
    }
    if (p.slope_at.data) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const float* place = line_of(p.slope_at, i) + 8 * n;
        if (8 * i < rows_left) values[i].x *= curve_slope(p.curve, place[0]);
        if (8 * i < rows_left && odd) values[i].y *= curve_slope(p.curve, place[1]);
      }
    } else if (p.curve != Curve::none) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        values[i].x = curve_value(p.curve, values[i].x);
        values[i].y = curve_value(p.curve, values[i].y);
      }
    }
    if (plan.paired) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        if (8 * i < rows_left) *reinterpret_cast<float2*>(lines[i] + offset) = values[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        if (8 * i < rows_left) lines[i][offset] = values[i].x;
        if (8 * i < rows_left && odd) lines[i][offset + step] = values[i].y;
      }
    }
  }
}

// product_rows.cu multiplies many rows with a small matrix: linear maps of activations, and their
// gradients by their input.
bool row_product_fits(const Product& product, Precision precision);
void launch_row_product(const ProductPlan& plan, Precision precision, cudaStream_t stream);

// Deep products of few elements (product_deep.cu): the gradients of weights, sums over all rows of
// outer products.
bool deep_product_fits(const Product& product);

// The depth of a part: each is summed from zero, and parts are added in order by the caller. Part i
// goes to workspace [rows, columns], then [rows] sums of A's rows, part_floats() apart.
int32_t deep_part_depth(const Product& product);
int64_t deep_part_floats(const Product& product);
void launch_deep_product(const ProductPlan& plan, Precision precision, float* workspace,
                         cudaStream_t stream);

}  // namespace posattn::cuda

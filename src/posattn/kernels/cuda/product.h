// Batched matrix products of any strides on the tensor core. For .cu files.
//
// Why not cuBLAS: it chooses its algorithm by the batch count too, so the bits of a run would
// depend on its fleet. Here the way a product is computed depends on the sizes of one slot's
// problem alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

// Where index i of a matrix lies: at i * stride; with groups, at
// (i / group) * group_stride + (i % group) * stride, e.g. (sample, column) of one head.
struct Axis {
  int64_t stride = 1;
  int32_t group = 0;  // 0: no groups
  int64_t group_stride = 0;

  __host__ __device__ int64_t offset(int32_t i) const {
    return group == 0 ? i * stride : (i / group) * group_stride + (i % group) * stride;
  }
};

// A matrix for every (slot, outer, inner) of the batch, which are strides here.
template <class T>
struct Matrix {
  T* data = nullptr;
  Axis row, column;
  int64_t slot = 0, outer = 0, inner = 0;

  // Converts as T* does to const T*.
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) operator Matrix<U>()
      const {  // NOLINT: implicit
    return {data, row, column, slot, outer, inner};
  }
};
// Row-major, rows `stride` apart; and its transpose.
template <class T>
Matrix<T> row_major(T* data, int64_t stride, int64_t slot = 0, int64_t outer = 0,
                    int64_t inner = 0) {
  return {data, {stride}, {1}, slot, outer, inner};
}
template <class T>
Matrix<T> transpose(Matrix<T> matrix) {
  std::swap(matrix.row, matrix.column);
  return matrix;
}

// What an MLP has between its maps.
enum class Curve : int32_t { none, relu, gelu, gelu_tanh };

// C [rows, columns] = epilogue(alpha A B), A [rows, depth], B [depth, columns].
struct Product {
  int32_t rows = 0, columns = 0, depth = 0;
  int32_t slots = 1, outer = 1, inner = 1;  // counts of the batch
  Matrix<const float> a, b;
  Matrix<float> c;

  // Epilogue, in this order. Matrices of one batch alone: outer = inner = 1 where one is given.
  float alpha = 1;
  bool accumulate = false;  // add to C
  // Add bias[slot * bias_slot + (row / bias_rows) * bias_stride + bias_column.offset(column)].
  const float* bias = nullptr;
  int64_t bias_slot = 0, bias_stride = 0;
  int32_t bias_rows = 0;  // 0: one bias for all rows
  Axis bias_column;
  Rows<const float> added;     // add it
  Rows<float> before;          // becomes what there is before the curve
  Curve curve = Curve::none;   // apply it; or, with
  Rows<const float> slope_at;  // multiply by its slope there

  // With C: row_sums[slot * row_sums_slot + row_sums_row.offset(row)] = the sum of a row of A. Of
  // a product whose C is a weight's gradient these are the bias's.
  float* row_sums = nullptr;
  int64_t row_sums_slot = 0;
  Axis row_sums_row;
};

// A deep product of few tiles (a weight gradient) is cut over its depth; the parts are added in
// order. Floats per slot that any product may need for its parts:
constexpr int64_t product_workspace = 128 * 64 * 64;

// Skips slots that rest (`steps` null: none does). `workspace` [slots, product_workspace].
void enqueue_product(const Product& product, Precision precision, const SlotStep* steps,
                     float* workspace, cudaStream_t stream);

}  // namespace posattn::cuda

// Operations on the rows of matrices, for every slot of a fleet: softmax, sums of rows, rotation,
// rows added to rows.
// For .cu files. Slots that rest are skipped (`steps` null: none rests). Sums have one order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

// Each slot has a matrix: element (slot, r, c) is at slot * slot_stride + r * stride + c.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t slot_stride = 0, stride = 0;

  // Converts as T* does to const T*.
  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) operator Rows<U>()
      const {  // NOLINT: implicit
    return {data, slot_stride, stride};
  }
};

// Which columns a row of scores attends to. Columns steps[slot].real_nodes .. absent_end - 1 stand
// for absent nodes (0: all are present). Causal: the rows are those of causal_nodes nodes, again
// and again, and node i attends to columns 0 .. i (0: not causal).
struct AttendedColumns {
  int32_t absent_end = 0, causal_nodes = 0;
};

// a = softmax of each row over the columns attended, zero in others; in place when a is x.
void enqueue_softmax(int slots, int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                     AttendedColumns attended, const SlotStep* steps, cudaStream_t stream);
// dx = a (da - <a, da>) per row, zero in columns not attended; in place when dx is da.
void enqueue_softmax_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> a,
                              Rows<const float> da, Rows<float> dx, AttendedColumns attended,
                              const SlotStep* steps, cudaStream_t stream);

// sums [slot][group] = or += sum of each group's rows; groups of `group_rows` rows follow each
// other.
void enqueue_group_sums(int slots, int32_t groups, int32_t group_rows, int32_t columns,
                        Rows<const float> x, Rows<float> sums, bool accumulate,
                        const SlotStep* steps, cudaStream_t stream);

// sum = part_0 + part_1 + ... in order; parts `stride` apart.
void enqueue_sum_parts(int slots, int32_t parts, int64_t count, Rows<const float> x, float* sum,
                       int64_t sum_slot_stride, bool accumulate, const SlotStep* steps,
                       cudaStream_t stream);

// Rotates the pairs (2i, 2i + 1) of every vector of `size` elements, `vectors` of them in a row;
// the row's node is row / node_rows. table [nodes, size] holds cos and sin of each pair's angle;
// sign -1 undoes +1 (and is its gradient). The last element stays when size is odd.
void enqueue_rotate(int slots, int64_t rows, int32_t node_rows, int32_t vectors, int32_t size,
                    const float* table, float sign, Rows<float> x, const SlotStep* steps,
                    cudaStream_t stream);

// y = or += row r / group_rows of x, for each row r: x [rows / group_rows, columns]. group_rows 1
// adds matrices.
void enqueue_spread(int slots, int64_t rows, int32_t group_rows, int32_t columns,
                    Rows<const float> x, Rows<float> y, bool accumulate, const SlotStep* steps,
                    cudaStream_t stream);

}  // namespace posattn::cuda

// What kernels on the rows of matrices share: a row is done by some neighbouring lanes of a warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int block_threads = 256;

__device__ inline bool rests(const SlotStep* steps, int slot) {
  return steps && steps[slot].samples == 0;
}

// Over `lanes` neighbouring lanes, a power of two.
template <int lanes, class T>
__device__ T sum_of_lanes(T x) {
  for (int other = lanes / 2; other > 0; other /= 2) x += __shfl_xor_sync(all_lanes, x, other);
  return x;
}
template <int lanes>
__device__ float largest_of_lanes(float x) {
  for (int other = lanes / 2; other > 0; other /= 2) {
    x = fmaxf(x, __shfl_xor_sync(all_lanes, x, other));
  }
  return x;
}

// The sum of every thread's value, to thread 0, in an order that depends on their number alone.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T sums[block_threads];
  sums[threadIdx.x] = value;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

// A row's place for `lanes` lanes. The last warp's surplus lanes do its last row again, so that all
// lanes exchange, and write nothing.
template <int lanes>
struct OwnRow {
  __device__ explicit OwnRow(int64_t rows)
      : row(static_cast<int64_t>(blockIdx.x) * (block_threads / lanes) + threadIdx.x / lanes),
        surplus(row >= rows) {
    if (surplus) row = rows - 1;
  }
  template <class T>
  __device__ T* of(Rows<T> matrix) const {
    return matrix.data + blockIdx.y * matrix.slot_stride + row * matrix.stride;
  }
  int64_t row;
  bool surplus;
};

// Whether every row can be read by fours.
template <class T>
bool in_fours(Rows<T> rows) {
  return reinterpret_cast<uintptr_t>(rows.data) % sizeof(float4) == 0 &&
         rows.slot_stride % 4 == 0 && rows.stride % 4 == 0;
}

inline dim3 blocks(int64_t count, int64_t per_block, int slots) {
  return dim3(static_cast<unsigned>(ceil_div(count, per_block)), slots);
}

// use(lanes, count): with how many lanes of a warp a row of so many columns is done, and how many
// rows a block does then.
template <class Use>
void with_lanes(int32_t columns, Use use) {
  const auto call = [&](auto lanes) { use(lanes, block_threads / lanes); };
  if (columns <= 8) return call(std::integral_constant<int, 8>());
  if (columns <= 16) return call(std::integral_constant<int, 16>());
  call(std::integral_constant<int, 32>());
}

}  // namespace posattn::cuda

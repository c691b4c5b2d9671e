// What kernels on the rows of matrices share: a row is done by some neighbouring lanes of a warp.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int block_threads = 256;

__device__ inline bool rests(const SlotStep* steps, int slot) {
  return steps && steps[slot].samples == 0;
}

// Adds up over `lanes` neighbouring lanes, a power of two.
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

// to = softmax of a row over the columns that `attended` names, zero in others, by `lanes` lanes;
// in place when `to` is `from`. A lane that does not write must still take part.
template <int lanes, class Attended>
__device__ void softmax_row(const float* from, float* to, int32_t columns, int lane,
                            const Attended& attended, bool writes = true) {
  float largest = -INFINITY;
  for (int c = lane; c < columns; c += lanes) {
    if (attended(c)) largest = fmaxf(largest, from[c]);
  }
  largest = largest_of_lanes<lanes>(largest);
  const auto weight = [&](int c) { return attended(c) ? expf(from[c] - largest) : 0.0f; };
  float sum = 0;
  for (int c = lane; c < columns; c += lanes) sum += weight(c);
  const float scale = 1 / sum_of_lanes<lanes>(sum);
  if (!writes) return;
  for (int c = lane; c < columns; c += lanes) to[c] = weight(c) * scale;
}
// to = a (da - <a, da>) for a row, zero in columns that are not attended; in place when `to` is da.
template <int lanes, class Attended>
__device__ void softmax_gradient_row(const float* a, const float* da, float* to, int32_t columns,
                                     int lane, const Attended& attended, bool writes = true) {
  float dot = 0;
  for (int c = lane; c < columns; c += lanes) {
    if (attended(c)) dot += a[c] * da[c];
  }
  dot = sum_of_lanes<lanes>(dot);
  if (!writes) return;
  for (int c = lane; c < columns; c += lanes) to[c] = attended(c) ? a[c] * (da[c] - dot) : 0.0f;
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

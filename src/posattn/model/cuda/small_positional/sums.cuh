// Sums over lanes and warps, in one order whoever adds the tiles.
#pragma once

#include "posattn/model/cuda/small_positional/mixing.cuh"

namespace posattn::cuda::positional {

constexpr int attention_numbers = heads * kernel_nodes * kernel_nodes;
static_assert(attention_numbers <= threads);

// Adds up over the lanes with the same t: a row tile's columns of the warp.
__device__ inline float sum_over_columns(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 16);
  x += __shfl_xor_sync(0xffffffffu, x, 8);
  return x + __shfl_xor_sync(0xffffffffu, x, 4);
}
// Adds up over the lanes with the same g.
__device__ inline float sum_over_nodes(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Sums over columns the numbers of the first eight samples at once: afterwards lane (g, t) has in
// values[0] those of sample g.
template <int bit = 4, int samples, int count>
__device__ inline void sum_samples(float (&values)[samples][count], const Thread& self) {
  const bool upper = (self.g & bit) != 0;
#pragma unroll
  for (int i = 0; i < bit; ++i) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const float x = values[i][k], y = values[i + bit][k];
      values[i][k] = (upper ? y : x) + __shfl_xor_sync(0xffffffffu, upper ? x : y, 4 * bit);
    }
  }
  if constexpr (bit > 1) sum_samples<bit / 2>(values, self);
}

// What the warps leave of a tile: parts of dA, and sums over their rows for their sixteen columns.
template <int vectors>
struct Parts {
  float attention[warps][attention_numbers];
  float sums[warps][vectors][16];

  __device__ void store(int vector, float first, float second, const Thread& self) {
    first = sum_over_nodes(first);
    second = sum_over_nodes(second);
    if (self.t == 0) {
      float* place = &sums[self.warp][vector][2 * self.g];
      place[0] = first;
      place[1] = second;
    }
  }
  // Nodes 2t and 2t + 1 have vectors of their own, from the first on.
  __device__ void store_nodes(const float (&values)[4], const Thread& self) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      sums[self.warp][2 * self.t + (e & 1)][2 * self.g + (e >> 1)] = values[e];
    }
  }
  // Returns number threadIdx.x of dA.
  __device__ float attention_sum(const FusedLayer& layer) const {
    const int k = threadIdx.x;
    if (k >= attention_numbers) return 0;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += attention[w][k];
    if (!layer.paired || k % kernel_nodes >= 4 || k / kernel_nodes % kernel_nodes >= 4) return sum;
      // Nodes 4 + i and 4 + j are those of the second sample.
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += attention[w][k + 4 * kernel_nodes + 4];
    return sum;
  }
  // A thread has column threadIdx.x % 64 of vectors threadIdx.x / 64 + 4 i.
  __device__ static int vector_of(int i) { return static_cast<int>(threadIdx.x) / columns + 4 * i; }
  __device__ float vector_sum(int vector) const {
    const int column = static_cast<int>(threadIdx.x) % columns;
    if (vector >= vectors) return 0;
    return sums[column / 16][vector][column % 16] + sums[column / 16 + 4][vector][column % 16];
  }
};

// Writes number threadIdx.x of dA to a folded gradient.
__device__ inline void store_attention(float* out, float value, int nodes) {
  const int k = threadIdx.x, h = k / (kernel_nodes * kernel_nodes);
  const int i = k / kernel_nodes % kernel_nodes, j = k % kernel_nodes;
  if (h < heads && i < nodes && j < nodes) out[(h * nodes + i) * nodes + j] = value;
}

}  // namespace posattn::cuda::positional

// What kernels of attention share: the matrices of a sample's head in shared memory, and their
// products by warps that own 16 nodes each. Lane (g, t) of a warp as in primitives.cuh.
//
// Which two of eight the lanes' elements t and t + 4 of a depth are does not matter as long as both
// operands agree: here they are 2t and 2t + 1, so that the columns a lane holds of a product are
// what it needs of the next one's left operand.
#pragma once

#include "posattn/kernels/cuda/product_plan.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

constexpr int most_nodes = 128, own_nodes = 16, most_threads = most_nodes / own_nodes * 32;

// Keeps a matrix [nodes, size] in shared memory, with zeros up to a multiple of 16 nodes and 8
// columns.
template <int fragments>
struct SharedMatrix {
  static constexpr int columns = 8 * fragments;
  static constexpr int pitch = columns + (fragments % 4 == 0 ? 8 : 0);  // spread over the banks

  __device__ static int floats(int nodes) { return (nodes + 15) / 16 * 16 * pitch; }

  // Starts to copy it.
  __device__ static void load(float* to, const float* from, int64_t stride, int nodes, int size) {
    const int chunks = (nodes + 15) / 16 * 16 * (columns / 4);
    for (int i = threadIdx.x; i < chunks; i += static_cast<int>(blockDim.x)) {
      const int node = i / (columns / 4), column = i % (columns / 4) * 4;
      const bool inside = node < nodes && column < size;
      copy_async_part<16>(to + node * pitch + column, inside ? from + node * stride + column : from,
                          inside ? 16 : 0);
    }
  }
};

// Holds a lane's part of the left operand of products over the columns of 16 nodes.
template <int fragments, bool exact>
struct LeftOperand {
  float high[fragments][4], low[fragments][4];

  __device__ LeftOperand(const float* shared, int first_node) {
    using Shared = SharedMatrix<fragments>;
    const int lane = threadIdx.x % 32;
    const float* upper = shared + (first_node + lane / 4) * Shared::pitch + lane % 4 * 2;
#pragma unroll
    for (int s = 0; s < fragments; ++s) {
      const float2 u = *reinterpret_cast<const float2*>(upper + 8 * s);
      const float2 l = *reinterpret_cast<const float2*>(upper + 8 * Shared::pitch + 8 * s);
      const float values[4] = {u.x, l.x, u.y, l.y};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        high[s][e] = values[e];
        split<exact>(high[s][e], low[s][e]);
      }
    }
  }
};

// c += A B, in fp32 as three products that do not wait for each other: a sum for each.
template <bool exact>
struct Sums {
  float whole[4] = {}, low[4] = {}, cross[4] = {};

  __device__ void multiply(const float (&a_high)[4], const float (&a_low)[4], float b0, float b1) {
    float low0, low1;
    split<exact>(b0, low0);
    split<exact>(b1, low1);
    if constexpr (exact) {
      mma_tf32(low, a_low[0], a_low[1], a_low[2], a_low[3], b0, b1);
      mma_tf32(cross, a_high[0], a_high[1], a_high[2], a_high[3], low0, low1);
    }
    mma_tf32(whole, a_high[0], a_high[1], a_high[2], a_high[3], b0, b1);
  }
  __device__ float total(int e) const { return exact ? whole[e] + (low[e] + cross[e]) : whole[e]; }
};

// c [16 own nodes, 16 nodes from `first` on] += own other^T, as two fragments.
template <int fragments, bool exact>
__device__ inline void multiply_nodes(float (&c)[2][4], const LeftOperand<fragments, exact>& own,
                                      const float* other, int first) {
  using Shared = SharedMatrix<fragments>;
  const int lane = threadIdx.x % 32;
  const float* from = other + (first + lane / 4) * Shared::pitch + lane % 4 * 2;
  Sums<exact> sums[2];
#pragma unroll
  for (int s = 0; s < fragments; ++s) {
#pragma unroll
    for (int f = 0; f < 2; ++f) {
      const float2 both = *reinterpret_cast<const float2*>(from + 8 * f * Shared::pitch + 8 * s);
      sums[f].multiply(own.high[s], own.low[s], both.x, both.y);
    }
  }
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int e = 0; e < 4; ++e) c[f][e] += sums[f].total(e);
  }
}

// sums [16 own nodes, columns] += weights [16 own nodes, 16 nodes from `first` on] times those
// nodes' rows.
template <int fragments, bool exact>
__device__ inline void mix_nodes(Sums<exact> (&sums)[fragments], const float (&weights)[2][4],
                                 const float* other, int first) {
  using Shared = SharedMatrix<fragments>;
  const int lane = threadIdx.x % 32;
  const float* from = other + (first + lane % 4 * 2) * Shared::pitch + lane / 4;
#pragma unroll
  for (int f = 0; f < 2; ++f) {
    // The tensor core's order is (g, 2t), (g + 8, 2t), (g, 2t + 1), (g + 8, 2t + 1).
    float high[4] = {weights[f][0], weights[f][2], weights[f][1], weights[f][3]}, low[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) split<exact>(high[e], low[e]);
#pragma unroll
    for (int n = 0; n < fragments; ++n) {
      const float* pair = from + 8 * f * Shared::pitch + 8 * n;
      sums[n].multiply(high, low, pair[0], pair[Shared::pitch]);
    }
  }
}

// Writes this lane's part of sums [16 nodes from `first` on, size], times `upper` and `lower`.
template <int fragments, bool exact>
__device__ inline void write_nodes(const Sums<exact> (&sums)[fragments], float* to, int64_t stride,
                                   int first, int nodes, int size, float upper, float lower) {
  const int lane = threadIdx.x % 32, node = first + lane / 4;
#pragma unroll
  for (int n = 0; n < fragments; ++n) {
    const int column = 8 * n + lane % 4 * 2;
    if (column >= size) break;
    float* place = to + node * stride + column;
    if (node < nodes) {
      *reinterpret_cast<float2*>(place) =
          make_float2(upper * sums[n].total(0), upper * sums[n].total(1));
    }
    if (node + 8 < nodes) {
      *reinterpret_cast<float2*>(place + 8 * stride) =
          make_float2(lower * sums[n].total(2), lower * sums[n].total(3));
    }
  }
}

// use(fragments, exact): with the smallest number of fragments that is compiled and holds `size`
// columns.
template <class Use>
void with_fragments(int32_t size, Precision precision, Use use) {
  const auto with_precision = [&](auto fragments) {
    if (precision == Precision::fp32) {
      use(fragments, std::true_type());
    } else {
      use(fragments, std::false_type());
    }
  };
  if (size <= 16) return with_precision(std::integral_constant<int, 2>());
  if (size <= 24) return with_precision(std::integral_constant<int, 3>());
  if (size <= 32) return with_precision(std::integral_constant<int, 4>());
  with_precision(std::integral_constant<int, 8>());
}

}  // namespace posattn::cuda

// Softmax over the keys of a unit, and its gradient, work in registers.
#pragma once

#include "posattn/model/cuda/medium/data_tile.cuh"

namespace posattn::cuda::medium {

// Scores times `down` -> coefficients; zeros in rows behind the nodes.
template <int node_tiles>
__device__ inline void softmax(float (&c)[2 * node_tiles][4], float down, const Layer& layer,
                               int present_nodes, int node, int lane) {
  const int nodes = layer.nodes;
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int key = 8 * n + 2 * (lane & 3) + (e & 1);
      const bool attended = key < nodes && (key < present_nodes || key >= layer.real_nodes);
      c[n][e] = attended ? c[n][e] * down : -INFINITY;
      most[e >> 1] = fmaxf(most[e >> 1], c[n][e]);
    }
  }
  float sum[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) most[half] = row_maximum(most[half]);
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[n][e] = __expf(c[n][e] - most[e >> 1]);
      sum[e >> 1] += c[n][e];
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float inverse = 1 / row_sum(sum[half]);
    sum[half] = node + (lane >> 2) + 8 * half < nodes ? inverse : 0;
  }
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) c[n][e] *= sum[e >> 1];
  }
}

// dA -> dS times attention_up, where A is `attention`.
template <int node_tiles>
__device__ inline void softmax_gradient(float (&c)[2 * node_tiles][4],
                                        const DataOperand (&attention)[node_tiles]) {
  float sum[2] = {0, 0};
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 a = unpack_halves(attention[n / 2].high[n % 2 * 2 + half]);
      sum[half] += a.x * c[n][2 * half] + a.y * c[n][2 * half + 1];
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) sum[half] = row_sum(sum[half]) * attention_down;
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 a = unpack_halves(attention[n / 2].high[n % 2 * 2 + half]);
      c[n][2 * half] = a.x * (c[n][2 * half] - sum[half]);
      c[n][2 * half + 1] = a.y * (c[n][2 * half + 1] - sum[half]);
    }
  }
}

// A unit of a head on the way back: z = A v -> shared memory, and c becomes dS times attention_up.
// `attention`: the unit's kept operands, the lane's. `v`, `dz` and `z` begin at the head's columns.
// Returns the largest magnitude of c.
template <int node_tiles>
__device__ inline float follow_unit(float (&c)[2 * node_tiles][4], const uint4* attention,
                                    const Half* v, const Half* dz, Half* z, Unit at, int nodes,
                                    int lane) {
  const int row = at.sample * nodes;
  DataOperand a[node_tiles];
#pragma unroll
  for (int k = 0; k < node_tiles; ++k) a[k] = as_operand(attention[32 * k]);
  {
    float mixed[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < node_tiles; ++k) add_mixed(mixed, a[k], v + (row + 16 * k) * stride, lane);
    store_mixed(z, mixed, attention_down, at, nodes, lane);
  }
  dot_rows<node_tiles, 32>(c, dz + (row + at.node) * stride, v + row * stride, lane);
  softmax_gradient<node_tiles>(c, a);
  float most = 0;
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) most = fmaxf(most, fabsf(c[n][e]));
  }
  return most;
}

}  // namespace posattn::cuda::medium

// Applies attention from positions to a tile.
#pragma once

#include "posattn/model/cuda/medium/tile.cuh"

namespace posattn::cuda::medium {

// Mixing, z = A v or A^T v: a warp takes sixteen nodes of a sample and sixteen columns at a time.
template <bool exact, int node_tiles, bool transposed>
struct Mixing {
  using S = Sizes<exact, node_tiles>;
  const Half *attention, *v;
  int nodes, samples, warp, lane;

  struct Place {
    int sample, node, column;
  };
  __device__ static Place place(int unit) {
    const int rest = unit / 4;
    return {rest / node_tiles, rest % node_tiles * 16, unit % 4 * 16};
  }
  __device__ int units() const { return samples * 4 * node_tiles; }

  __device__ void mix(float (&c)[2][4], int unit) const {
    const Place at = place(unit);
    const Half* a_place =
        attention + at.column / 32 * S::attention_halves +
        (transposed ? swapped_block_place(lane, S::attention_stride) + at.node
                    : block_place(lane, S::attention_stride) + at.node * S::attention_stride);
    const Half* b_place = v + at.sample * nodes * stride + at.column + block_place(lane, stride);
    clear(c);
#pragma unroll
    for (int k = 0; k < 16 * node_tiles; k += 16) {
      const Operand<exact> a = load_operand<exact, transposed, heads * S::attention_halves>(
          a_place + (transposed ? k * S::attention_stride : k));
      multiply(c, a, load_operand<exact, true, S::plane>(b_place + k * stride));
    }
  }
  __device__ void store(Half* to, const float (&c)[2][4], float factor, int unit) const {
    const Place at = place(unit);
    const int node = at.node + (lane >> 2);
    Half* place = to + (at.sample * nodes + node) * stride + at.column + 2 * (lane & 3);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&x)[4] = c[n];
      if (node < nodes) store_pair<exact, S::plane>(place + 8 * n, factor * x[0], factor * x[1]);
      if (node + 8 < nodes) {
        store_pair<exact, S::plane>(place + 8 * n + 8 * stride, factor * x[2], factor * x[3]);
      }
    }
  }

  __device__ void mix_to(Half* to, float factor) const {
#pragma unroll 2
    for (int unit = warp; unit < units(); unit += S::warps) {
      float c[2][4];
      mix(c, unit);
      store(to, c, factor, unit);
    }
  }
  // Mixes where other warps still read what lies at `to`: there are barriers in it.
  __device__ void mix_in_place(Half* to, float factor) const {
    float c[S::mixed_share][2][4];
#pragma unroll
    for (int i = 0; i < S::mixed_share; ++i) {
      if (warp + i * S::warps < units()) mix(c[i], warp + i * S::warps);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::mixed_share; ++i) {
      if (warp + i * S::warps < units()) store(to, c[i], factor, warp + i * S::warps);
    }
  }
};

}  // namespace posattn::cuda::medium

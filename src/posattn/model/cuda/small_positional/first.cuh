// Layer 0 inside the kernels of layer 1. Its input is one number per node, so with x_0 = x and
// x_h = A_h x it is r = relu(sum_m a_m x_m + c), cheap enough to be done again instead of stored.
#pragma once

#include <type_traits>

#include "posattn/model/cuda/small_positional/parts.cuh"

namespace posattn::cuda::positional {

// Stands where only the kernels of layer 1 have something.
struct Nothing {};
template <bool yes, class T>
using Only = std::conditional_t<yes, T, Nothing>;

template <int N>
struct alignas(16) FirstLayer {
  AttentionRows<N> attention;
  float maps[fused_maps][tile_columns];
  float constant[tile_columns];
  // {x_0, x_1, x_2, unused}, for two tiles; one sample of padding against bank conflicts
  float inputs[2][N][tile_samples + 1][4];

  // A barrier must follow.
  __device__ void load(const FusedLayer& layer, int slot) {
    const float* folded = layer.natural + slot * layer.folded_size;
    attention.load(folded + layer.first_attention, layer.nodes);
    const int k = threadIdx.x;
    if (k < fused_maps * tile_columns)
      maps[k / tile_columns][k % tile_columns] = folded[layer.first_maps + k];
    if (k < tile_columns) constant[k] = folded[layer.first_constant + k];
  }

  // The input number that a thread keeps for make_rows; lanes 2 i and 2 i + 1 of warp w have
  // samples w and w + 8 of node i.
  __device__ static float input(const FusedLayer& layer, const TileWalk& place,
                                const Thread& self) {
    const int node = self.lane >> 1, sample = self.warp + 8 * (self.lane & 1);
    if (node >= min(N, layer.nodes)) return 0;
    return layer.inputs[(int64_t{1} * place.slot * layer.nodes + node) * layer.sample_stride +
                        place.tile * tile_samples + sample];
  }

  // rows = r of the tile whose inputs are given, and inputs[buffer]. Each warp makes samples w and
  // w + 8; a barrier must follow.
  template <bool exact>
  __device__ void make_rows(float* rows, int buffer, float input, const Thread& self) {
    const int node = min(self.lane >> 1, N - 1), half = self.lane & 1;
    float mixed[fused_heads] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float x = __shfl_sync(0xffffffffu, input, 2 * j + half);
#pragma unroll
      for (int h = 0; h < fused_heads; ++h) mixed[h] += attention.values[h][node][j] * x;
    }
    if (self.lane < 2 * N) {
      store4(inputs[buffer][node][self.warp + 8 * half], input, mixed[0], mixed[1], 0);
    }
    __syncwarp();
    // From here a lane is a chunk: columns 2 lane and 2 lane + 1.
    const NodeChunks chunks(self.warp, self.lane);
    const float2 c = pair_of(constant, self.lane);
    float2 a[fused_maps];
#pragma unroll
    for (int m = 0; m < fused_maps; ++m) a[m] = pair_of(maps[m], self.lane);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float r[2][2];
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const float4 x = load4(inputs[buffer][i][self.warp + 8 * s]);
        r[0][s] = c.x + a[0].x * x.x + a[1].x * x.y + a[2].x * x.z;
        r[1][s] = c.y + a[0].y * x.x + a[1].y * x.y + a[2].y * x.z;
      }
      store4(rows + chunks.at(i), operand<exact>(fmaxf(r[0][0], 0)),
             operand<exact>(fmaxf(r[0][1], 0)), operand<exact>(fmaxf(r[1][0], 0)),
             operand<exact>(fmaxf(r[1][1], 0)));
    }
  }

 private:
  __device__ static float2 pair_of(const float* values, int pair) {
    return *reinterpret_cast<const float2*>(values + 2 * pair);
  }
};

// The gradient of layer 0, summed over the tiles of an item: da_m of the thread's two columns, and
// the thread's number of dA. With q_h,i = du_i . a_h (over columns), dA_h(i, j) is the sum over
// samples of q_h,i x_j: two tensor products, whose rows are (head, node i).
template <int N>
struct FirstGradient {
  static constexpr bool has_ninth = N > 8;
  ColumnSums maps[fused_maps];
  float attention;

  __device__ void clear() {
#pragma unroll
    for (int m = 0; m < fused_maps; ++m) maps[m].clear();
    attention = 0;
  }

  // Adds a tile to the maps, and writes the warp's part of its dA into part [H][N][N]. errors: du
  // of the thread's columns.
  template <bool exact>
  __device__ void add_tile(const float (&errors)[N][4], const FirstLayer<N>& first, int buffer,
                           float* part, const Thread& self) {
    const auto& inputs = first.inputs[buffer];
    float fresh_maps[fused_maps][2] = {};
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float4 x = load4(inputs[i][self.g]), y = load4(inputs[i][self.g + 8]);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        fresh_maps[0][e] += errors[i][e] * x.x + errors[i][2 + e] * y.x;
        fresh_maps[1][e] += errors[i][e] * x.y + errors[i][2 + e] * y.y;
        fresh_maps[2][e] += errors[i][e] * x.z + errors[i][2 + e] * y.z;
      }
    }
#pragma unroll
    for (int m = 0; m < fused_maps; ++m) maps[m].add_tile(fresh_maps[m]);
    const int k = self.column();
    const float4 a =
        make_float4(operand<exact>(first.maps[1][k]), operand<exact>(first.maps[2][k]),
                    operand<exact>(first.maps[1][k + 1]), operand<exact>(first.maps[2][k + 1]));
    float q[2][4] = {}, ninth[2][4] = {};  // [samples 0-7, 8-15]
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool mine = self.g == (i & 7);
      const float4 row =
          make_float4(mine ? a.x : 0, mine ? a.y : 0, mine ? a.z : 0, mine ? a.w : 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply<exact>(i < 8 ? q[half] : ninth[half], row,
                        make_float2(operand<exact>(errors[i][2 * half]),
                                    operand<exact>(errors[i][2 * half + 1])));
      }
    }
    // C fragments: rows (0, g) and (1, g), columns j = 2t and 2t + 1; then node 8, where row 0
    // counts.
    float eight[4] = {}, last[4] = {};
    const int j = min(self.g, N - 1);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int sample = 8 * half + 2 * self.t;
      const float2 x = make_float2(operand<exact>(inputs[j][sample][0]),
                                   operand<exact>(inputs[j][sample + 1][0]));
      multiply<exact>(eight, fragment<exact>(q[half]), x);
      if constexpr (has_ninth) multiply<exact>(last, fragment<exact>(ninth[half]), x);
    }
    // Nodes j >= 8 have no input.
#pragma unroll
    for (int h = 0; h < fused_heads; ++h) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int node = 2 * self.t + e;
        if (self.g < N && node < N) part[(h * N + self.g) * N + node] = eight[2 * h + e];
        if constexpr (has_ninth) {
          if (self.g == 0) part[(h * N + 8) * N + node] = last[2 * h + e];
        }
      }
      if constexpr (has_ninth) {
        if (self.t == 0) part[(h * N + self.g) * N + 8] = 0;
        if (self.lane == 0) part[(h * N + 8) * N + 8] = 0;
      }
    }
  }

 private:
  // Accumulators as the left operand of a next product, over what were their columns.
  template <bool exact>
  __device__ static float4 fragment(const float (&c)[4]) {
    return make_float4(operand<exact>(c[0]), operand<exact>(c[2]), operand<exact>(c[1]),
                       operand<exact>(c[3]));
  }
};

}  // namespace posattn::cuda::positional

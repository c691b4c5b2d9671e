// Gradients that a block adds up over its tiles, in registers: each warp has some tiles of 16 x 16.
// The tensor core truncates when it adds, and every tile has its own scales, so products start at
// zero in every tile.
#pragma once

#include "posattn/model/cuda/medium/tile.cuh"

namespace posattn::cuda::medium {

__device__ inline void write_zeros(float* to, int count, int threads) {
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads) to[at] = 0;
}

// The threads' sums of their columns (Rows of rows.cuh), added up in order. `shared` holds
// threads * 4 floats.
template <int threads>
__device__ inline void store_column_sums(float* to, float* shared, float4 sums) {
  const int thread = static_cast<int>(threadIdx.x);
  reinterpret_cast<float4*>(shared)[thread] = sums;
  __syncthreads();
  if (thread >= columns) return;
  float sum = 0;
  for (int row = 0; row < threads / 16; ++row) sum += shared[row * columns + thread];
  to[thread] = sum;
}

// sum = Y^T X over the rows of tiles, 64 x 64.
template <bool exact, int node_tiles>
struct MapGradient {
  using S = Sizes<exact, node_tiles>;
  float sum[S::gradient_share][2][4] = {};

  __device__ void add(const Half* y, const Half* x, float factor, int warp, int lane) {
#pragma unroll
    for (int i = 0; i < S::gradient_share; ++i) {
      const int unit = warp + i * S::warps;
      if (unit >= 16) break;
      const Half* a = y + unit / 4 * 16 + swapped_block_place(lane, stride);
      const Half* b = x + unit % 4 * 16 + block_place(lane, stride);
      float c[2][4] = {};
#pragma unroll
      for (int k = 0; k < S::row_tiles; ++k) {
        multiply(c, load_operand<exact, true, S::plane>(a + 16 * k * stride),
                 load_operand<exact, true, S::plane>(b + 16 * k * stride));
      }
      add_scaled(sum[i], c, factor);
    }
  }
  __device__ void store(float* to, int warp, int lane) const {
#pragma unroll
    for (int i = 0; i < S::gradient_share; ++i) {
      const int unit = warp + i * S::warps;
      if (unit >= 16) break;
      float* place = to + (unit / 4 * 16 + (lane >> 2)) * columns + unit % 4 * 16 + 2 * (lane & 3);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float(&x)[4] = sum[i][n];
        *reinterpret_cast<float2*>(place + 8 * n) = make_float2(x[0], x[1]);
        *reinterpret_cast<float2*>(place + 8 * n + 8 * columns) = make_float2(x[2], x[3]);
      }
    }
  }
};

// dA_h = sum over samples of dz_h v_h^T.
template <bool exact, int node_tiles>
struct AttentionGradient {
  using S = Sizes<exact, node_tiles>;
  float sum[S::attention_share][2][4] = {};

  struct Place {
    int head, query, key;
  };
  __device__ static Place place(int unit) {
    const int rest = unit / node_tiles;
    return {rest / node_tiles, rest % node_tiles * 16, unit % node_tiles * 16};
  }
  __device__ void add(const Half* dz, const Half* v, float factor, int nodes, int samples, int warp,
                      int lane) {
#pragma unroll
    for (int i = 0; i < S::attention_share; ++i) {
      const int unit = warp + i * S::warps;
      if (unit >= S::attention_tiles) break;
      const Place at = place(unit);
      const Half* a = dz + at.query * stride + 32 * at.head + block_place(lane, stride);
      const Half* b = v + at.key * stride + 32 * at.head + swapped_block_place(lane, stride);
      float c[2][4] = {};
#pragma unroll 2
      for (int sample = 0; sample < samples; ++sample) {
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
          const int further = sample * nodes * stride + k;
          multiply(c, load_operand<exact, false, S::plane>(a + further),
                   load_operand<exact, false, S::plane>(b + further));
        }
      }
      add_scaled(sum[i], c, factor);
    }
  }
  __device__ void store(float* to, int nodes, int warp, int lane) const {
#pragma unroll
    for (int i = 0; i < S::attention_share; ++i) {
      const int unit = warp + i * S::warps;
      if (unit >= S::attention_tiles) break;
      const Place at = place(unit);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int query = at.query + (lane >> 2) + (e >> 1) * 8;
          const int key = at.key + 8 * n + 2 * (lane & 3) + (e & 1);
          if (query < nodes && key < nodes) {
            to[(at.head * nodes + query) * nodes + key] = sum[i][n][e];
          }
        }
      }
    }
  }
};

}  // namespace posattn::cuda::medium

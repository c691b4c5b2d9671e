// Gradients of 64 x 64 matrices in layers with attention from data, in registers: a warp has
// sixteen rows by 32 columns of some of them, as gradient.cuh says why.
#pragma once

#include "posattn/model/cuda/medium/data_tile.cuh"

namespace posattn::cuda::medium {

// Brings a tile's s and du to shared memory as halves, `present` rows of them, and adds the columns
// of du to `column_sums`. There is a barrier in it, behind which nobody reads the tile before any
// more; another must follow.
// `largest`: 64 of them. `next`: rows that are wanted after these; they come to the second-level
// cache.
__device__ inline void load_backward_rows(Half* s, Half* du, Scale& s_scale, Scale& du_scale,
                                          uint32_t* largest, const float* s_from,
                                          const float* du_from, int present, int next,
                                          float4& column_sums, int warp, int lane) {
  using Tile = Rows<data_threads, data_rows>;
  float4 s_rows[Tile::count], du_rows[Tile::count];
  uint32_t s_most = 0, du_most = 0;
#pragma unroll
  for (int i = 0; i < Tile::count; ++i) {
    s_rows[i] = Tile::load(s_from, present, i);
    du_rows[i] = Tile::load(du_from, present, i);
  }
  const int behind = present * columns;
  for (int at = 32 * static_cast<int>(threadIdx.x); at < next * columns; at += 32 * data_threads) {
    prefetch(s_from + behind + at);
    prefetch(du_from + behind + at);
  }
#pragma unroll
  for (int i = 0; i < Tile::count; ++i) {
    s_most = largest_of(s_most, s_rows[i]);
    du_most = largest_of(du_most, du_rows[i]);
    column_sums.x += du_rows[i].x;
    column_sums.y += du_rows[i].y;
    column_sums.z += du_rows[i].z;
    column_sums.w += du_rows[i].w;
  }
  put_largest(largest, s_most, warp, lane);
  put_largest(largest + 32, du_most, warp, lane);
  __syncthreads();
  s_scale = scale_of(get_largest<data_warps>(largest, lane));
  du_scale = scale_of(get_largest<data_warps>(largest + 32, lane));
#pragma unroll
  for (int i = 0; i < Tile::count; ++i) {
    Tile::template store<false, 0>(s, s_rows[i], s_scale.up, i);
    Tile::template store<false, 0>(du, du_rows[i], du_scale.up, i);
  }
}

// A part of Y^T X over the rows of tiles; of 64 x 64 there are eight.
struct GradientPart {
  static constexpr int count = 8;
  float sum[2][2][4] = {};

  __device__ void add(const Half* y, const Half* x, float factor, int part, int lane) {
    const Half* a = y + part / 2 * 16 + swapped_block_place(lane, stride);
    const Half* b = x + part % 2 * 32;
    float c[2][2][4] = {};
#pragma unroll 3
    for (int k = 0; k < data_rows; k += 16) {
      add_mixed(c, load_halves<true>(a + k * stride), b + k * stride, lane);
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) add_scaled(sum[pair], c[pair], factor);
  }
  __device__ void store(float* to, int part, int lane) const {
    float* place = to + (part / 2 * 16 + (lane >> 2)) * columns + part % 2 * 32 + 2 * (lane & 3);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float(&x)[4] = sum[pair][n];
        float* there = place + 16 * pair + 8 * n;
        *reinterpret_cast<float2*>(there) = make_float2(x[0], x[1]);
        *reinterpret_cast<float2*>(there + 8 * columns) = make_float2(x[2], x[3]);
      }
    }
  }
};

}  // namespace posattn::cuda::medium

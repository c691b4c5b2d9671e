// Gradients of the weights of a layer l >= 1, sums over the samples and nodes of tiles:
//   maps:   dM_m = sum du_i^T s_m,i, s_0 = r, s_h,i = sum_j A_h,ij r_j;   dc = sum du_i
//   scores: dG_h = sum r_i^T t_h,i,  t_h,i = sum_j ds_h,ij r_j;           dg_h = sum_i t_h,i
// The inner dimension of these products is the samples; mixing is done in the registers that hold
// the fragments. Warp (block, head) = (warp / 2, warp % 2) has columns 16 block .. + 15 of s_h or
// t_h against all columns of du or r, and against half of them for s_0.
#pragma once

#include "posattn/model/cuda/small_standard/attention.cuh"

namespace posattn::cuda::standard {

enum class Weights { of_maps, of_scores };

// A lane's part of a product is a number of 16 x 8 pieces: eight, for s_0 four.
template <int count>
__device__ inline void clear_pieces(float (&pieces)[count][4]) {
#pragma unroll
  for (int k = 0; k < count; ++k) {
#pragma unroll
    for (int e = 0; e < 4; ++e) pieces[k][e] = 0;
  }
}
template <int count>
__device__ inline void add_pieces(float (&pieces)[count][4], const float (&other)[count][4]) {
#pragma unroll
  for (int k = 0; k < count; ++k) {
#pragma unroll
    for (int e = 0; e < 4; ++e) pieces[k][e] += other[k][e];
  }
}
// From and to shared memory [count][thread][4], where registers are short.
template <int count>
constexpr int piece_floats = count* tile_threads * 4;
template <int count>
__device__ inline void load_pieces(float (&pieces)[count][4], const float* shared) {
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const float4 c = load4(shared + (k * tile_threads + static_cast<int>(threadIdx.x)) * 4);
    pieces[k][0] = c.x;
    pieces[k][1] = c.y;
    pieces[k][2] = c.z;
    pieces[k][3] = c.w;
  }
}
template <int count>
__device__ inline void store_pieces(float* shared, const float (&pieces)[count][4]) {
#pragma unroll
  for (int k = 0; k < count; ++k) {
    store4(shared + (k * tile_threads + static_cast<int>(threadIdx.x)) * 4, pieces[k][0],
           pieces[k][1], pieces[k][2], pieces[k][3]);
  }
}

// One tile. mixed[2 k], [2 k + 1] belong to the 16 columns of `left` (du or r) at
// 16 (k ^ order), those at + 2 n and + 2 n + 1; `vector` gets the lane's part of dc or dg.
template <bool exact, int N, Weights weights>
__device__ inline void add_weight_products(float (&mixed)[8][4], float (&plain)[4][4],
                                           float (&vector)[2], const float* left, const float* rows,
                                           const float* coefficients, int block, int head,
                                           int order, int lane) {
  const int g = lane >> 2, t = lane & 3;
#pragma unroll 1
  for (int group = t; group < 8; group += 4) {
    float4 r[N];
#pragma unroll
    for (int j = 0; j < N; ++j) r[j] = load4(rows + tile_offset(j, group, 8 * block + g));
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float4 s = make_float4(0, 0, 0, 0);
#pragma unroll
      for (int j = 0; j < N; j += 2) {
        const float4 a = load4(coefficients + coefficient_offset<N>(head, i, j / 2, group));
        s.x += a.x * r[j].x;
        s.y += a.y * r[j].y;
        s.z += a.x * r[j].z;
        s.w += a.y * r[j].w;
        if (j + 1 < N) {
          s.x += a.z * r[j + 1].x;
          s.y += a.w * r[j + 1].y;
          s.z += a.z * r[j + 1].z;
          s.w += a.w * r[j + 1].w;
        }
      }
      if constexpr (weights == Weights::of_scores) {
        vector[0] += s.x + s.y;
        vector[1] += s.z + s.w;
      }
      s = make_float4(operand<exact>(s.x), operand<exact>(s.z), operand<exact>(s.y),
                      operand<exact>(s.w));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float4 v = load4(left + tile_offset(i, group, 8 * (k ^ order) + g));
        const float2 b[2] = {make_float2(v.x, v.y), make_float2(v.z, v.w)};
        float(*const c[2])[4] = {&mixed[2 * k], &mixed[2 * k + 1]};
        multiply<exact, 2>(c, s, b);
        if constexpr (weights == Weights::of_maps) {
          if (k < 2) {
            float(*const c_plain[2])[4] = {&plain[2 * k], &plain[2 * k + 1]};
            multiply<exact, 2>(c_plain, make_float4(r[i].x, r[i].z, r[i].y, r[i].w), b);
          }
          if (k == 0) {
            vector[0] += v.x + v.y;
            vector[1] += v.z + v.w;
          }
        }
      }
    }
  }
}

// Adds a tile's products to sums over several tiles, those of s_0 in shared memory; `vector_sums`
// are complete in each of the four lanes of a group.
template <bool exact, int N, Weights weights>
__device__ inline void add_weights(float (&mixed_sums)[8][4], float* shared_plain,
                                   float (&vector_sums)[2], const float* left, const float* rows,
                                   const float* coefficients, int block, int head, int order,
                                   int lane) {
  float mixed[8][4], plain[4][4], vector[2] = {0, 0};
  clear_pieces(mixed);
  clear_pieces(plain);
  add_weight_products<exact, N, weights>(mixed, plain, vector, left, rows, coefficients, block,
                                         head, order, lane);
  add_pieces(mixed_sums, mixed);
  if constexpr (weights == Weights::of_maps) {
    float before[4][4];
    load_pieces(before, shared_plain);
    add_pieces(plain, before);
    store_pieces(shared_plain, plain);
  }
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    vector[e] += __shfl_xor_sync(0xffffffffu, vector[e], 1);
    vector_sums[e] += vector[e] + __shfl_xor_sync(0xffffffffu, vector[e], 2);
  }
}

// Writes pieces 2 k and 2 k + 1 to their place in a gradient [left column][row column].
__device__ inline void write_piece(float* gradient, const float (&even)[4], const float (&odd)[4],
                                   int left_block, int block, int lane) {
  const int g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    float* place = gradient + (16 * left_block + 4 * t + 2 * e) * tile_columns + 16 * block + 2 * g;
    *reinterpret_cast<float2*>(place) = make_float2(even[e], even[2 + e]);
    *reinterpret_cast<float2*>(place + tile_columns) = make_float2(odd[e], odd[2 + e]);
  }
}

// Writes dc or dg to 16 columns from `place`.
__device__ inline void write_vector(float* place, const float (&vector_sums)[2], int lane) {
  if ((lane & 3) != 0) return;
  *reinterpret_cast<float2*>(place + 2 * (lane >> 2)) = make_float2(vector_sums[0], vector_sums[1]);
}

}  // namespace posattn::cuda::standard

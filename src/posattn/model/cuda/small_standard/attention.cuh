// Attention coefficients of a tile, one [N, N] matrix per sample and head: their layout, products
// of rows that make scores, softmax and its gradient, and mixing.
//
//   coefficients[head][i][pair of j][group 8, swizzled][4]    {A(i, j), A(i, j + 1)} of sample
//                                                             group and of sample group + 8,
//                                                             interleaved: x, y: j; z, w: j + 1
//
// Warp w makes those of samples w and w + 8.
#pragma once

#include "posattn/model/cuda/small_standard/step.cuh"

namespace posattn::cuda::standard {

template <int N>
constexpr int node_pairs = (N + 1) / 2;
template <int N>
constexpr int coefficient_floats = heads* N* node_pairs<N> * 32;

// The swizzle spreads what the lanes of dot_rows store over all banks.
template <int N>
__device__ constexpr int coefficient_offset(int head, int i, int pair, int group) {
  const int swizzle = (pair & 1) | (((i >> 1) & 3) << 1);
  return ((head * N + i) * node_pairs<N> + pair) * 32 + ((group ^ swizzle) << 2);
}

// to[i] += sum_j A_ij from[j], for a lane's accumulators of samples group and group + 8.
template <int N>
__device__ inline void mix(float (&to)[N][4], const float (&from)[N][4], const float* coefficients,
                           int head, int group) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const float4 a = load4(coefficients + coefficient_offset<N>(head, i, j / 2, group));
      to[i][0] += a.x * from[j][0];
      to[i][1] += a.x * from[j][1];
      to[i][2] += a.y * from[j][2];
      to[i][3] += a.y * from[j][3];
      if (j + 1 < N) {
        to[i][0] += a.z * from[j + 1][0];
        to[i][1] += a.z * from[j + 1][1];
        to[i][2] += a.w * from[j + 1][2];
        to[i][3] += a.w * from[j + 1][3];
      }
    }
  }
}

// to[j] += A_ij from_i.
template <int N>
__device__ inline void mix_row_transposed(float (&to)[N][4], const float (&from_i)[4],
                                          const float* coefficients, int head, int i, int group) {
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    const float4 a = load4(coefficients + coefficient_offset<N>(head, i, j / 2, group));
    to[j][0] += a.x * from_i[0];
    to[j][1] += a.x * from_i[1];
    to[j][2] += a.y * from_i[2];
    to[j][3] += a.y * from_i[3];
    if (j + 1 < N) {
      to[j + 1][0] += a.z * from_i[0];
      to[j + 1][1] += a.z * from_i[1];
      to[j + 1][2] += a.w * from_i[2];
      to[j + 1][3] += a.w * from_i[3];
    }
  }
}
// to[j] += sum_i A_ij from[i].
template <int N>
__device__ inline void mix_transposed(float (&to)[N][4], const float (&from)[N][4],
                                      const float* coefficients, int head, int group) {
#pragma unroll
  for (int i = 0; i < N; ++i) mix_row_transposed(to, from[i], coefficients, head, i, group);
}

// store(head, p, q, x, y) with x = rows_p . columns_q of the warp's first sample, y of its second,
// for all nodes p and q; `columns` holds one tile per head. A product of the tensor core has the
// nodes p as its rows (node 8 as row 8; the others from there are not used) and eight nodes q of
// one head as its columns; a third one takes node q = 8 of both heads.
template <bool exact, int N, class Store>
__device__ inline void dot_rows(const float* rows, const float* columns, int warp, int lane,
                                Store store) {
  constexpr bool ninth = N > 8;
  constexpr int blocks = heads + (ninth ? 1 : 0);
  const int g = lane >> 2, t = lane & 3;
  const int node = g < N ? g : N - 1;
  float first[blocks][4] = {}, second[blocks][4] = {};
  float(*c_first[blocks])[4];
  float(*c_second[blocks])[4];
#pragma unroll
  for (int m = 0; m < blocks; ++m) {
    c_first[m] = &first[m];
    c_second[m] = &second[m];
  }
#pragma unroll 2
  for (int step = 0; step < 8; ++step) {
    const int chunk = 4 * step + t;
    const float4 low = load4(rows + tile_offset(node, warp, chunk));
    float4 high = make_float4(0, 0, 0, 0);
    float2 b_first[blocks], b_second[blocks];
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const float4 b = load4(columns + h * tile_floats<N> + tile_offset(node, warp, chunk));
      b_first[h] = make_float2(b.x, b.z);
      b_second[h] = make_float2(b.y, b.w);
    }
    if constexpr (ninth) {
      high = load4(rows + tile_offset(8, warp, chunk));
      const float4 b = load4(columns + (g & 1) * tile_floats<N> + tile_offset(8, warp, chunk));
      b_first[heads] = make_float2(b.x, b.z);
      b_second[heads] = make_float2(b.y, b.w);
    }
    multiply<exact, blocks>(c_first, make_float4(low.x, high.x, low.z, high.z), b_first);
    multiply<exact, blocks>(c_second, make_float4(low.y, high.y, low.w, high.w), b_second);
  }
#pragma unroll
  for (int h = 0; h < heads; ++h) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int q = 2 * t + e;
      if (g < N && q < N) store(h, g, q, first[h][e], second[h][e]);
      if (ninth && g == 0) store(h, 8, q, first[h][2 + e], second[h][2 + e]);
    }
    if constexpr (ninth) {
      if (t == 0) store(h, g, 8, first[heads][h], second[heads][h]);
      if (lane == 0) store(h, 8, 8, first[heads][2 + h], second[heads][2 + h]);
    }
  }
}

// Places the result of dot_rows: node q = i attends to node p = j.
template <int N>
struct StoreScores {
  float* coefficients;
  int warp;
  __device__ void operator()(int head, int j, int i, float x, float y) const {
    float* place = coefficients + coefficient_offset<N>(head, i, j >> 1, warp) + 2 * (j & 1);
    *reinterpret_cast<float2*>(place) = make_float2(x, y);
  }
};

// A row of coefficients of a warp's two samples; lane < heads N holds row i = lane % N of head
// lane / N.
template <int N>
struct CoefficientRow {
  float first[N], second[N];

  __device__ void load(const float* coefficients, int warp, int lane) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const float4 a = load4(coefficients + coefficient_offset<N>(lane / N, lane % N, j / 2, warp));
      first[j] = a.x;
      second[j] = a.y;
      if (j + 1 < N) {
        first[j + 1] = a.z;
        second[j + 1] = a.w;
      }
    }
  }
  __device__ void store(float* coefficients, int warp, int lane) const {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const int next = j + 1 < N ? j + 1 : j;
      store4(coefficients + coefficient_offset<N>(lane / N, lane % N, j / 2, warp), first[j],
             second[j], first[next], second[next]);
    }
  }
};

// softmax over the attended nodes (bits of `attended`); the others get zero.
template <int N>
__device__ inline void softmax(float (&row)[N], uint32_t attended) {
  float most = -INFINITY;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (attended >> j & 1) most = fmaxf(most, row[j]);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    row[j] = (attended >> j & 1) ? expf(row[j] - most) : 0.0f;
    sum += row[j];
  }
  const float scale = 1.0f / sum;
#pragma unroll
  for (int j = 0; j < N; ++j) row[j] *= scale;
}

// ds = A (dA - sum_j A dA), in place of dA.
template <int N>
__device__ inline void softmax_gradient(float (&row)[N], const float (&attention)[N]) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) sum += attention[j] * row[j];
#pragma unroll
  for (int j = 0; j < N; ++j) row[j] = attention[j] * (row[j] - sum);
}

// Scores -> A in place, for the warp's two samples.
template <int N>
__device__ inline void softmax_rows(float* coefficients, uint32_t attended, int warp, int lane) {
  __syncwarp();
  if (lane >= heads * N) return;
  CoefficientRow<N> row;
  row.load(coefficients, warp, lane);
  softmax(row.first, attended);
  softmax(row.second, attended);
  row.store(coefficients, warp, lane);
}

// dA -> ds in place.
template <int N>
__device__ inline void softmax_gradient_rows(float* coefficients, const float* attention, int warp,
                                             int lane) {
  __syncwarp();
  if (lane >= heads * N) return;
  CoefficientRow<N> row, a;
  row.load(coefficients, warp, lane);
  a.load(attention, warp, lane);
  softmax_gradient(row.first, a.first);
  softmax_gradient(row.second, a.second);
  row.store(coefficients, warp, lane);
}

template <int N>
__device__ inline void write_coefficients(float* global, const float* shared) {
  for (int k = 4 * static_cast<int>(threadIdx.x); k < coefficient_floats<N>;
       k += 4 * tile_threads) {
    *reinterpret_cast<float4*>(global + k) = load4(shared + k);
  }
}

}  // namespace posattn::cuda::standard

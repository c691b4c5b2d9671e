// Tables of layer 0, whose input rows are s_i = [v_i | P_i] with one value v and fixed positions P:
// the layer's folded weights, applied to P once a step (C_0 has c inside):
//   M_m s_j = a_m v_j + C_m,j,            a_m = M_m(:, 0),  C_m,j = M_m(:, 1..) P_j
//   score_ij = T_ij + v_i heard_j + (hearing_i + v_i corner) v_j,
//     T_ij = P_i G(1.., 1..) P_j^T + g(1..) . P_j,  heard_j = G(0, 1..) . P_j,
//     hearing_i = P_i . G(1.., 0) + g(0),           corner = G(0, 0).
// At the end of the step the gradients of M, c, G and g follow from those of the tables.
#pragma once

#include "posattn/model/cuda/fused_standard_step.cuh"

namespace posattn::cuda::standard {

// Where the tables of a slot, and their gradients, lie.
template <int N>
struct Tables {
  __host__ __device__ static constexpr int value_column(int m) { return m * tile_columns; }  // a
  __host__ __device__ static constexpr int node_rows(int m, int j) {                         // C
    return (maps + m * N + j) * tile_columns;
  }
  __host__ __device__ static constexpr int pairs(int h, int i, int j) {  // T
    return node_rows(maps, 0) + (h * N + i) * N + j;
  }
  __host__ __device__ static constexpr int heard(int h, int j) {
    return pairs(heads, 0, 0) + h * N + j;
  }
  __host__ __device__ static constexpr int hearing(int h, int i) {
    return heard(heads, 0) + h * N + i;
  }
  __host__ __device__ static constexpr int corner(int h) { return hearing(heads, 0) + h; }
  static constexpr int size = (maps * (1 + N)) * tile_columns + heads * (N * N + 2 * N + 1);
};

__device__ inline float position(const Step& step, int slot, int node, int column) {
  return node < step.nodes
             ? step.positions[slot * step.positions_stride + node * step.encoding_size + column]
             : 0.0f;
}

// One block per slot; tables [slots, Tables<N>::size].
template <int N>
__global__ void make_tables(Step step, Layer layer, float* all_tables) {
  const int slot = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (step.slots[slot].samples == 0) return;
  const int p = step.encoding_size, k = 1 + p;  // columns of s
  const float* folded = step.folded + slot * step.folded_size;
  float* tables = all_tables + int64_t{1} * slot * Tables<N>::size;
  for (int e = thread; e < maps * tile_columns; e += tile_threads) {
    tables[Tables<N>::value_column(0) + e] = folded[layer.maps + e * k];
  }
  for (int e = thread; e < maps * N * tile_columns; e += tile_threads) {
    const int o = e % tile_columns, j = e / tile_columns % N, m = e / tile_columns / N;
    const float* map = folded + layer.maps + (m * tile_columns + o) * k;
    float sum = m == 0 ? folded[layer.constant + o] : 0.0f;
    for (int q = 0; q < p; ++q) sum += map[1 + q] * position(step, slot, j, q);
    tables[Tables<N>::node_rows(m, j) + o] = sum;
  }
  for (int e = thread; e < heads * N * N; e += tile_threads) {
    const int j = e % N, i = e / N % N, h = e / N / N;
    const float* scores = folded + layer.scores + h * k * k;
    const float* bias = folded + layer.score_bias + h * k;
    float sum = 0;
    for (int b = 0; b < p; ++b) {
      float inner = bias[1 + b];
      for (int a = 0; a < p; ++a) {
        inner += position(step, slot, i, a) * scores[(1 + a) * k + 1 + b];
      }
      sum += inner * position(step, slot, j, b);
    }
    tables[Tables<N>::pairs(h, i, j)] = sum;
  }
  for (int e = thread; e < heads * N; e += tile_threads) {
    const int j = e % N, h = e / N;
    const float* scores = folded + layer.scores + h * k * k;
    float heard = 0, hearing = folded[layer.score_bias + h * k];
    for (int q = 0; q < p; ++q) {
      heard += scores[1 + q] * position(step, slot, j, q);
      hearing += scores[(1 + q) * k] * position(step, slot, j, q);
    }
    tables[Tables<N>::heard(h, j)] = heard;
    tables[Tables<N>::hearing(h, j)] = hearing;
    if (j == 0) tables[Tables<N>::corner(h)] = scores[0];
  }
}

// The groups' gradients of the tables and losses, added in order; then layer 0's part of the folded
// gradients. One block per slot.
template <int N>
__global__ void finish_first(Step step, Layer layer, const float* table_gradients,
                             float* folded_gradients, double* losses) {
  const int slot = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  if (step.slots[slot].samples == 0) return;
  auto* sums = reinterpret_cast<float*>(dynamic_shared());
  const int64_t first_part = int64_t{1} * slot * step.groups;
  for (int e = thread; e < Tables<N>::size; e += tile_threads) {
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < step.groups; ++part) {
      sum += table_gradients[(first_part + part) * Tables<N>::size + e];
    }
    sums[e] = sum;
  }
  __syncthreads();
  if (thread == 0) {
    double loss = 0;
    for (int part = 0; part < step.groups; ++part) loss += step.losses[first_part + part];
    losses[slot] = loss * step.slots[slot].loss_scale;
  }
  const int p = step.encoding_size, k = 1 + p;
  float* gradient = folded_gradients + slot * step.folded_size;
  for (int e = thread; e < maps * tile_columns * k; e += tile_threads) {
    const int q = e % k, o = e / k % tile_columns, m = e / k / tile_columns;
    float sum = 0;
    if (q == 0) sum = sums[Tables<N>::value_column(m) + o];
    for (int j = 0; q > 0 && j < N; ++j) {
      sum += sums[Tables<N>::node_rows(m, j) + o] * position(step, slot, j, q - 1);
    }
    gradient[layer.maps + e] = sum;
  }
  for (int o = thread; o < tile_columns; o += tile_threads) {
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += sums[Tables<N>::node_rows(0, j) + o];
    gradient[layer.constant + o] = sum;
  }
  // s_i(a): the value's column stands for itself in the tables, the others are those of P.
  for (int e = thread; e < heads * k * k; e += tile_threads) {
    const int b = e % k, a = e / k % k, h = e / k / k;
    float sum = 0;
    if (a == 0 && b == 0) sum = sums[Tables<N>::corner(h)];
    for (int i = 0; (a > 0 || b > 0) && i < N; ++i) {
      if (a == 0) {
        sum += sums[Tables<N>::heard(h, i)] * position(step, slot, i, b - 1);
      } else if (b == 0) {
        sum += sums[Tables<N>::hearing(h, i)] * position(step, slot, i, a - 1);
      } else {
        float inner = 0;
        for (int j = 0; j < N; ++j) {
          inner += sums[Tables<N>::pairs(h, i, j)] * position(step, slot, j, b - 1);
        }
        sum += inner * position(step, slot, i, a - 1);
      }
    }
    gradient[layer.scores + e] = sum;
  }
  for (int e = thread; e < heads * k; e += tile_threads) {
    const int b = e % k, h = e / k;
    float sum = 0;
    for (int i = 0; i < N; ++i) {
      if (b == 0) sum += sums[Tables<N>::hearing(h, i)];
      for (int j = 0; b > 0 && j < N; ++j) {
        sum += sums[Tables<N>::pairs(h, i, j)] * position(step, slot, j, b - 1);
      }
    }
    gradient[layer.score_bias + e] = sum;
  }
}

}  // namespace posattn::cuda::standard

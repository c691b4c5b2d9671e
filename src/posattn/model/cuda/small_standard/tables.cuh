// Tables of layer 0, whose input rows are s_i = [v_i | P_i] with one value v and fixed positions P:
// the layer's folded weights, applied to P once a step (C_0 has c inside):
//   M_m s_j = a_m v_j + C_m,j,            a_m = M_m(:, 0),  C_m,j = M_m(:, 1..) P_j
//   score_ij = T_ij + v_i key_term_j + (query_term_i + v_i corner) v_j,
//     T_ij = P_i G(1.., 1..) P_j^T + g(1..) . P_j,  key_term_j = G(0, 1..) . P_j,
//     query_term_i = P_i . G(1.., 0) + g(0),           corner = G(0, 0).
// At the end of the step the gradients of M, c, G and g follow from those of the tables.
#pragma once

#include "posattn/model/cuda/small_standard/step.cuh"

namespace posattn::cuda::standard {

// Where the tables of a slot lie.
template <int N>
struct Tables {
  __host__ __device__ static constexpr int value_column(int m) { return m * tile_columns; }  // a
  __host__ __device__ static constexpr int node_rows(int m, int j) {                         // C
    return (maps + m * N + j) * tile_columns;
  }
  __host__ __device__ static constexpr int pairs(int h, int i, int j) {  // T
    return node_rows(maps, 0) + (h * N + i) * N + j;
  }
  __host__ __device__ static constexpr int key_term(int h, int j) {
    return pairs(heads, 0, 0) + h * N + j;
  }
  __host__ __device__ static constexpr int query_term(int h, int i) {
    return key_term(heads, 0) + h * N + i;
  }
  __host__ __device__ static constexpr int corner(int h) { return query_term(heads, 0) + h; }
  static constexpr int size = (maps * (1 + N)) * tile_columns + heads * (N * N + 2 * N + 1);
};

// Where a block's gradients of the tables lie: those of a and C as above, then for the scores four
// sums over samples of each (h, i, j): of ds, ds v_i, ds v_j, ds v_i v_j.
constexpr int score_sums = 4;
template <int N>
struct TableGradients {
  __host__ __device__ static constexpr int scores(int sum, int h) {
    return Tables<N>::node_rows(maps, 0) + (sum * heads + h) * N * N;
  }
  static constexpr int size = Tables<N>::node_rows(maps, 0) + score_sums * heads * N * N;
};

__device__ inline float position(const Step& step, int slot, int node, int column) {
  return node < step.nodes
             ? step.positions
                   .data[slot * step.positions.slot_stride + node * step.encoding_size + column]
             : 0.0f;
}

// Makes tables [slots, Tables<N>::size]. A slot has table_blocks blocks.
constexpr int table_blocks = 8;
template <int N>
__global__ void make_tables(Step step, Layer layer, float* all_tables) {
  constexpr int threads = table_blocks * tile_threads;
  const int slot = static_cast<int>(blockIdx.y);
  const int thread = static_cast<int>(blockIdx.x * tile_threads + threadIdx.x);
  if (step.slots[slot].samples == 0) return;
  const int p = step.encoding_size, k = 1 + p;  // columns of s
  const float* folded = step.folded + slot * step.folded_size;
  float* tables = all_tables + int64_t{1} * slot * Tables<N>::size;
  for (int e = thread; e < maps * tile_columns; e += threads) {
    tables[Tables<N>::value_column(0) + e] = folded[layer.maps + e * k];
  }
  for (int e = thread; e < maps * N * tile_columns; e += threads) {
    const int o = e % tile_columns, j = e / tile_columns % N, m = e / tile_columns / N;
    const float* map = folded + layer.maps + (m * tile_columns + o) * k;
    float sum = m == 0 ? folded[layer.constant + o] : 0.0f;
    for (int q = 0; q < p; ++q) sum += map[1 + q] * position(step, slot, j, q);
    tables[Tables<N>::node_rows(m, j) + o] = sum;
  }
  for (int e = thread; e < heads * N * N; e += threads) {
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
  for (int e = thread; e < heads * N; e += threads) {
    const int j = e % N, h = e / N;
    const float* scores = folded + layer.scores + h * k * k;
    float key_term = 0, query_term = folded[layer.score_bias + h * k];
    for (int q = 0; q < p; ++q) {
      key_term += scores[1 + q] * position(step, slot, j, q);
      query_term += scores[(1 + q) * k] * position(step, slot, j, q);
    }
    tables[Tables<N>::key_term(h, j)] = key_term;
    tables[Tables<N>::query_term(h, j)] = query_term;
    if (j == 0) tables[Tables<N>::corner(h)] = scores[0];
  }
}

// The sum of what a slot's blocks left in parts[0], parts[stride], ...: in the order of
// small_standard/step.cuh.
template <class Number>
__device__ inline Number sum_parts(const Step& step, const Number* parts, int64_t stride) {
  constexpr int batch = 4 * tiles_per_group;  // loads under way together
  const int group = tiles_per_group / step.block_tiles;
  Number sum = 0, group_sum = 0;
  for (int first = 0, in_group = 0; first < step.blocks; first += batch) {
    Number x[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      x[k] = first + k < step.blocks ? parts[(first + k) * stride] : Number{0};
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      group_sum += x[k];
      if (++in_group < group) continue;
      sum += group_sum;
      group_sum = 0;
      in_group = 0;
    }
  }
  return sum;
}

// Makes the gradients of M_m and c from those of the tables, for 16 columns of the output.
constexpr int finish_columns = 16;
template <int N>
__device__ inline void finish_map(const Step& step, const Layer& layer, const float* parts,
                                  float* gradient, int slot, int m, int first_column) {
  __shared__ float sums[1 + N][finish_columns];  // a, then C
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < (1 + N) * finish_columns) {
    const int row = thread / finish_columns, o = thread % finish_columns;
    const int place = row == 0 ? Tables<N>::value_column(m) : Tables<N>::node_rows(m, row - 1);
    sums[row][o] = sum_parts(step, parts + place + first_column + o, TableGradients<N>::size);
  }
  __syncthreads();
  const int k = 1 + step.encoding_size;
  for (int e = thread; e < finish_columns * k; e += tile_threads) {
    const int q = e % k, o = e / k;
    float sum = 0;
    if (q == 0) sum = sums[0][o];
    for (int j = 0; q > 0 && j < N; ++j) sum += sums[1 + j][o] * position(step, slot, j, q - 1);
    gradient[layer.maps + (m * tile_columns + first_column + o) * k + q] = sum;
  }
  if (m == 0 && thread < finish_columns) {
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += sums[1 + j][thread];
    gradient[layer.constant + first_column + thread] = sum;
  }
}

// Makes the gradients of G_h and g_h.
template <int N>
__device__ inline void finish_scores(const Step& step, const Layer& layer, const float* parts,
                                     float* gradient, int slot, int h) {
  __shared__ float sums[score_sums][N][N];
  __shared__ float key_term[N], query_term[N], corner;
  const int thread = static_cast<int>(threadIdx.x);
  for (int e = thread; e < score_sums * N * N; e += tile_threads) {
    const int place = TableGradients<N>::scores(e / (N * N), h) + e % (N * N);
    (&sums[0][0][0])[e] = sum_parts(step, parts + place, TableGradients<N>::size);
  }
  __syncthreads();
  if (thread < N) {
    float of_key = 0, of_query = 0;
    for (int k = 0; k < N; ++k) {
      of_key += sums[1][k][thread];
      of_query += sums[2][thread][k];
    }
    key_term[thread] = of_key;
    query_term[thread] = of_query;
  } else if (thread == 32) {
    float sum = 0;
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) sum += sums[3][i][j];
    }
    corner = sum;
  }
  __syncthreads();
  // s_i(a): the value's column stands for itself in the tables, the others are those of P.
  const int k = 1 + step.encoding_size;
  for (int e = thread; e < k * k; e += tile_threads) {
    const int b = e % k, a = e / k;
    float sum = a == 0 && b == 0 ? corner : 0.0f;
    for (int i = 0; (a > 0 || b > 0) && i < N; ++i) {
      if (a == 0) {
        sum += key_term[i] * position(step, slot, i, b - 1);
      } else if (b == 0) {
        sum += query_term[i] * position(step, slot, i, a - 1);
      } else {
        float inner = 0;
        for (int j = 0; j < N; ++j) inner += sums[0][i][j] * position(step, slot, j, b - 1);
        sum += inner * position(step, slot, i, a - 1);
      }
    }
    gradient[layer.scores + h * k * k + e] = sum;
  }
  for (int b = thread; b < k; b += tile_threads) {
    float sum = 0;
    for (int i = 0; i < N; ++i) {
      if (b == 0) sum += query_term[i];
      for (int j = 0; b > 0 && j < N; ++j) sum += sums[0][i][j] * position(step, slot, j, b - 1);
    }
    gradient[layer.score_bias + h * k + b] = sum;
  }
}

// Layer 0's part of the folded gradients, and the losses. Blocks are (task, slot): 16 columns of a
// map, a head, or the loss.
constexpr int finish_map_tasks = maps * (tile_columns / finish_columns);
constexpr int finish_tasks = finish_map_tasks + heads + 1;
template <int N>
__global__ void finish_first(Step step, Layer layer, const float* table_gradients,
                             float* folded_gradients, double* losses) {
  const int task = static_cast<int>(blockIdx.x), slot = static_cast<int>(blockIdx.y);
  if (step.slots[slot].samples == 0) return;
  const int64_t part = int64_t{1} * slot * step.blocks;
  const float* parts = table_gradients + part * TableGradients<N>::size;
  float* gradient = folded_gradients + slot * step.folded_size;
  if (task < finish_map_tasks) {
    finish_map<N>(step, layer, parts, gradient, slot, task % maps, task / maps * finish_columns);
  } else if (task < finish_map_tasks + heads) {
    finish_scores<N>(step, layer, parts, gradient, slot, task - finish_map_tasks);
  } else if (threadIdx.x == 0 && step.losses != nullptr) {
    losses[slot] = sum_parts(step, step.losses + part, 1) * step.slots[slot].loss_scale;
  }
}

}  // namespace posattn::cuda::standard

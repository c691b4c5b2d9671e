// Layer 0, forward and backward, from the tables of fused_standard_tables.cuh. Nothing here is a
// product worth a tensor core but du . (M_h s_j).
#pragma once

#include "posattn/model/cuda/fused_standard_attention.cuh"
#include "posattn/model/cuda/fused_standard_tables.cuh"

namespace posattn::cuda::standard {

// The values of a group's tiles, [tile][node][sample].
template <int N>
constexpr int group_values = tiles_per_group* N* tile_samples;
template <int N>
__device__ inline void load_values(float* values, const Step& step, const Place& place) {
  for (int e = static_cast<int>(threadIdx.x); e < group_values<N>; e += tile_threads) {
    const int tile = place.first + e / (N * tile_samples), node = e / tile_samples % N;
    const int64_t row = int64_t{1} * place.slot * step.nodes + node;
    values[e] = tile < place.end && node < step.nodes
                    ? step.inputs[row * step.sample_stride + tile * tile_samples + e % tile_samples]
                    : 0.0f;
  }
}

// M_m s_j for a lane's samples and columns.
template <int N>
__device__ inline void map_inputs(float (&to)[N][4], const float* tables, int m,
                                  const float* values, int group, int column) {
  const float2 a = *reinterpret_cast<const float2*>(tables + Tables<N>::value_column(m) + column);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float2 c = *reinterpret_cast<const float2*>(tables + Tables<N>::node_rows(m, j) + column);
    const float first = values[j * tile_samples + group];
    const float second = values[j * tile_samples + group + 8];
    to[j][0] = c.x + a.x * first;
    to[j][1] = c.y + a.y * first;
    to[j][2] = c.x + a.x * second;
    to[j][3] = c.y + a.y * second;
  }
}

// The attention of the warp's two samples.
template <int N>
__device__ inline void attend_inputs(float* attention, const float* tables, const float* values,
                                     uint32_t heard, int warp, int lane) {
  if (lane >= heads * N) return;
  const int h = lane / N, i = lane % N;
  const float corner = tables[Tables<N>::corner(h)], hearing = tables[Tables<N>::hearing(h, i)];
  const float first = values[i * tile_samples + warp], second = values[i * tile_samples + warp + 8];
  CoefficientRow<N> row;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float pair = tables[Tables<N>::pairs(h, i, j)], of_j = tables[Tables<N>::heard(h, j)];
    row.first[j] =
        pair + first * of_j + (hearing + first * corner) * values[j * tile_samples + warp];
    row.second[j] =
        pair + second * of_j + (hearing + second * corner) * values[j * tile_samples + warp + 8];
  }
  softmax(row.first, heard);
  softmax(row.second, heard);
  row.store(attention, warp, lane);
}

template <int N>
struct FirstForwardShared {
  float attention[coefficient_floats<N>];
  float values[group_values<N>];
};

template <bool exact, int N>
__global__ void __launch_bounds__(tile_threads, 2)
    forward_first(Step step, Layer layer, const float* all_tables) {
  const Place place(step);
  auto& shared = *reinterpret_cast<FirstForwardShared<N>*>(dynamic_shared());
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const int group = lane >> 2, column = 8 * warp + 2 * (lane & 3);
  const float* tables = all_tables + int64_t{1} * place.slot * Tables<N>::size;
  const uint32_t heard = heard_nodes(step, place.step);
  load_values<N>(shared.values, step, place);
  for (int tile = place.first; tile < place.end; ++tile) {
    const int64_t index = int64_t{1} * place.slot * step.tiles + tile;
    const float* values = shared.values + (tile - place.first) * N * tile_samples;
    __syncthreads();
    attend_inputs<N>(shared.attention, tables, values, heard, warp, lane);
    __syncthreads();
    write_coefficients<N>(layer.attention + index * coefficient_floats<N>, shared.attention);
    float u[N][4], mapped[N][4];
    map_inputs<N>(u, tables, 0, values, group, column);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      __syncwarp();  // keeps the compiler from loading for both heads at once
      map_inputs<N>(mapped, tables, 1 + h, values, group, column);
      mix(u, mapped, shared.attention, h, group);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) u[i][e] = fmaxf(u[i][e], 0.0f);
      store_node<exact>(layer.output + index * tile_floats<N>, i, warp, lane, u[i]);
    }
  }
}

template <int N>
struct FirstBackwardShared {
  float gradient[2][tile_floats<N>];          // du
  float mapped[heads][tile_floats<N>];        // M_h s
  float attention[2][coefficient_floats<N>];  // A
  float scores[coefficient_floats<N>];        // ds
  float values[group_values<N>];
};

// Sums over a thread's tiles. As lane of a warp: da and dC of its two columns, over its samples; as
// thread (h, i, j): sums of ds, ds v_i, ds v_j, ds v_i v_j.
template <int N>
struct TableSums {
  float value_column[maps][2] = {};
  float node_rows[maps][N][2] = {};
  float pair = 0, heard = 0, hearing = 0, corner = 0;

  // `mapped_gradient` is the gradient of M_m s_j.
  __device__ void add(int m, const float (&mapped_gradient)[N][4], const float* values, int group) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float first = values[j * tile_samples + group];
      const float second = values[j * tile_samples + group + 8];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        value_column[m][e] += mapped_gradient[j][e] * first + mapped_gradient[j][2 + e] * second;
        node_rows[m][j][e] += mapped_gradient[j][e] + mapped_gradient[j][2 + e];
      }
    }
  }
  __device__ void add_scores(const float* scores, const float* values, int thread) {
    if (thread >= heads * N * N) return;
    const int j = thread % N, i = thread / N % N, h = thread / N / N;
#pragma unroll 4
    for (int group = 0; group < 8; ++group) {
      const float2 ds = *reinterpret_cast<const float2*>(
          scores + coefficient_offset<N>(h, i, j >> 1, group) + 2 * (j & 1));
      const float* of_i = values + i * tile_samples + group;
      const float* of_j = values + j * tile_samples + group;
      pair += ds.x + ds.y;
      heard += ds.x * of_i[0] + ds.y * of_i[8];
      hearing += ds.x * of_j[0] + ds.y * of_j[8];
      corner += ds.x * of_i[0] * of_j[0] + ds.y * of_i[8] * of_j[8];
    }
  }
};

__device__ inline float sum_over_groups_of_lanes(float x) {
#pragma unroll
  for (int mask = 4; mask <= 16; mask *= 2) x += __shfl_xor_sync(0xffffffffu, x, mask);
  return x;
}

// A group's gradients of the tables; `scratch` has 3 heads N N floats.
template <int N>
__device__ inline void write_table_sums(float* gradient, const TableSums<N>& sums, float* scratch,
                                        int warp, int lane) {
  const int thread = static_cast<int>(threadIdx.x), column = 8 * warp + 2 * lane;
#pragma unroll
  for (int m = 0; m < maps; ++m) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float a = sum_over_groups_of_lanes(sums.value_column[m][e]);
      if (lane < 4) gradient[Tables<N>::value_column(m) + column + e] = a;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float c = sum_over_groups_of_lanes(sums.node_rows[m][j][e]);
        if (lane < 4) gradient[Tables<N>::node_rows(m, j) + column + e] = c;
      }
    }
  }
  constexpr int pairs = heads * N * N;
  __syncthreads();
  if (thread < pairs) {
    gradient[Tables<N>::pairs(0, 0, 0) + thread] = sums.pair;
    scratch[thread] = sums.heard;
    scratch[pairs + thread] = sums.hearing;
    scratch[2 * pairs + thread] = sums.corner;
  }
  __syncthreads();
  if (thread < heads * N) {
    const float* of_head = scratch + thread / N * N * N;
    float heard = 0, hearing = 0;
    for (int i = 0; i < N; ++i) {
      heard += of_head[i * N + thread % N];
      hearing += of_head[pairs + thread % N * N + i];
    }
    gradient[Tables<N>::heard(0, 0) + thread] = heard;
    gradient[Tables<N>::hearing(0, 0) + thread] = hearing;
  } else if (thread < heads * N + heads) {
    const int h = thread - heads * N;
    float corner = 0;
    for (int e = 0; e < N * N; ++e) corner += scratch[2 * pairs + h * N * N + e];
    gradient[Tables<N>::corner(h)] = corner;
  }
}

// table_gradients [slots, groups, Tables<N>::size].
template <bool exact, int N>
__global__ void __launch_bounds__(tile_threads, 1)
    backward_first(Step step, Layer layer, const float* all_tables, float* table_gradients) {
  const Place place(step);
  if (place.rests()) return;
  auto& shared = *reinterpret_cast<FirstBackwardShared<N>*>(dynamic_shared());
  const int thread = static_cast<int>(threadIdx.x), warp = thread >> 5, lane = thread & 31;
  const int group = lane >> 2, column = 8 * warp + 2 * (lane & 3);
  const float* tables = all_tables + int64_t{1} * place.slot * Tables<N>::size;
  const int64_t tiles = int64_t{1} * place.slot * step.tiles;
  const auto copy_tile = [&](int tile) {
    const int stage = (tile - place.first) & 1;
    copy_block(shared.gradient[stage], layer.gradient + (tiles + tile) * tile_floats<N>,
               tile_floats<N>);
    copy_block(shared.attention[stage], layer.attention + (tiles + tile) * coefficient_floats<N>,
               coefficient_floats<N>);
    commit_copies();
  };
  TableSums<N> sums;
  if (place.first < place.end) copy_tile(place.first);
  load_values<N>(shared.values, step, place);
  __syncthreads();
  for (int tile = place.first; tile < place.end; ++tile) {
    const float* gradient = shared.gradient[(tile - place.first) & 1];
    const float* attention = shared.attention[(tile - place.first) & 1];
    const float* values = shared.values + (tile - place.first) * N * tile_samples;
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float mapped[N][4];
      map_inputs<N>(mapped, tables, 1 + h, values, group, column);
#pragma unroll
      for (int j = 0; j < N; ++j) store_node<exact>(shared.mapped[h], j, warp, lane, mapped[j]);
    }
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < place.end) copy_tile(tile + 1);
    dot_rows<exact, N>(gradient, shared.mapped[0], warp, lane,
                       StoreScoresTransposed<N>{shared.scores, warp});
    softmax_gradient_rows<N>(shared.scores, attention, warp, lane);
    float du[N][4];
#pragma unroll
    for (int i = 0; i < N; ++i) load_node(du[i], gradient, i, warp, lane);
    sums.add(0, du, values, group);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float mapped_gradient[N][4];
      fill(mapped_gradient, 0, 0);
      mix_transposed(mapped_gradient, du, attention, h, group);
      sums.add(1 + h, mapped_gradient, values, group);
    }
    __syncthreads();
    sums.add_scores(shared.scores, values, thread);
  }
  const int64_t part = int64_t{1} * place.slot * step.groups + place.group;
  write_table_sums<N>(table_gradients + part * Tables<N>::size, sums, shared.mapped[0], warp, lane);
}

}  // namespace posattn::cuda::standard

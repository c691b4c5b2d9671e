// Layer 0, forward, from the tables of small_standard/tables.cuh. Nothing here is a product worth a
// tensor core.
#pragma once

#include "posattn/model/cuda/small_standard/attention.cuh"
#include "posattn/model/cuda/small_standard/tables.cuh"

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
      for (int e = 0; e < 4; ++e) u[i][e] = relu(u[i][e]);
      store_node<exact>(layer.output + index * tile_floats<N>, i, warp, lane, u[i]);
    }
  }
}

}  // namespace posattn::cuda::standard

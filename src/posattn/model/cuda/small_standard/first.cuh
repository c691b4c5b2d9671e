// Layer 0, forward, from the tables of small_standard/tables.cuh. No product here is worth a
// tensor core.
#pragma once

#include "posattn/model/cuda/small_positional/tile.cuh"
#include "posattn/model/cuda/small_standard/attention.cuh"
#include "posattn/model/cuda/small_standard/tables.cuh"

namespace posattn::cuda::standard {

// How many values a group's tiles have, [tile][node][sample].
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

// Makes M_m s_j for a lane's samples and columns.
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

// Makes the attention of the warp's two samples.
template <int N>
__device__ inline void attend_inputs(float* attention, const float* tables, const float* values,
                                     uint32_t attended, int warp, int lane) {
  if (lane >= heads * N) return;
  const int h = lane / N, i = lane % N;
  const float corner = tables[Tables<N>::corner(h)],
              query_term = tables[Tables<N>::query_term(h, i)];
  const float first = values[i * tile_samples + warp], second = values[i * tile_samples + warp + 8];
  CoefficientRow<N> row;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float pair = tables[Tables<N>::pairs(h, i, j)], of_j = tables[Tables<N>::key_term(h, j)];
    row.first[j] =
        pair + first * of_j + (query_term + first * corner) * values[j * tile_samples + warp];
    row.second[j] =
        pair + second * of_j + (query_term + second * corner) * values[j * tile_samples + warp + 8];
  }
  softmax(row.first, attended);
  softmax(row.second, attended);
  row.store(attention, warp, lane);
}

template <int N>
struct FirstForwardShared {
  float attention[coefficient_floats<N>];
  float values[group_values<N>];
};

// relu(u) for a lane's samples and columns of a tile; keeps A in layer.attention.
template <int N>
__device__ inline void forward_first_tile(float (&u)[N][4], FirstForwardShared<N>& shared,
                                          const Step& step, const Layer& layer, const Place& place,
                                          const float* tables, int tile, int warp, int lane) {
  const int group = lane >> 2, column = 8 * warp + 2 * (lane & 3);
  const int64_t index = int64_t{1} * place.slot * step.tiles + tile;
  const float* values = shared.values + (tile - place.first) * N * tile_samples;
  __syncthreads();
  attend_inputs<N>(shared.attention, tables, values, attended_nodes(step, place.step), warp, lane);
  __syncthreads();
  write_coefficients<N>(layer.attention + index * coefficient_floats<N>, shared.attention);
  float mapped[N][4];
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
  }
}

template <bool exact, int N>
__global__ void __launch_bounds__(tile_threads, 2)
    forward_first(Step step, Layer layer, const float* all_tables) {
  const Place place(step);
  auto& shared = *reinterpret_cast<FirstForwardShared<N>*>(dynamic_shared());
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const float* tables = all_tables + int64_t{1} * place.slot * Tables<N>::size;
  load_values<N>(shared.values, step, place);
  for (int tile = place.first; tile < place.end; ++tile) {
    float u[N][4];
    forward_first_tile<N>(u, shared, step, layer, place, tables, tile, warp, lane);
    const int64_t index = int64_t{1} * place.slot * step.tiles + tile;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      store_node<exact>(layer.output + index * tile_floats<N>, i, warp, lane, u[i]);
    }
  }
}

// forward_first for tiles of halves. It writes all of them, with the samples that are absent, since
// the later layers read them.
template <int N>
__global__ void __launch_bounds__(tile_threads, 2)
    forward_first_tf32(Step step, Layer layer, const float* all_tables,
                       positional::Tile<false>* output) {
  __shared__ uint32_t largest[tile_warps];
  Place place(step);
  if (place.rests()) return;
  place.end = min(place.first + step.block_tiles, step.tiles);
  auto& shared = *reinterpret_cast<FirstForwardShared<N>*>(dynamic_shared());
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const float* tables = all_tables + int64_t{1} * place.slot * Tables<N>::size;
  load_values<N>(shared.values, step, place);
  for (int tile = place.first; tile < place.end; ++tile) {
    float u[N][4];
    forward_first_tile<N>(u, shared, step, layer, place, tables, tile, warp, lane);
    float most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) most = fmaxf(most, u[i][e]);
    }
    const uint32_t most_of_warp = warp_maximum(__float_as_uint(most));
    if (lane == 0) largest[warp] = most_of_warp;
    __syncthreads();
    uint32_t most_of_tile = 0;
#pragma unroll
    for (int w = 0; w < tile_warps; ++w) most_of_tile = max(most_of_tile, largest[w]);
    const int exponent = positional::clamped(
        7 - positional::exponent_of(__uint_as_float(most_of_tile)), positional::most_exponent);
    const float up = positional::power_of_two(exponent);
    positional::Tile<false>& to = output[int64_t{1} * place.slot * step.tiles + tile];
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = positional::row_of((lane >> 2) + 8 * half, i);
        to.words[0][positional::word_of(row, warp) + (lane & 3)] =
            pack_halves(u[i][2 * half] * up, u[i][2 * half + 1] * up);
      }
    }
    if (lane == 0) to.largest[warp] = __float_as_uint(__uint_as_float(most_of_warp) * up);
    if (threadIdx.x == 0) to.exponent = exponent;
  }
}

}  // namespace posattn::cuda::standard

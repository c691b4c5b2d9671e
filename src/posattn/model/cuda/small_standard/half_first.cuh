// Layer 0, forward, for kernels of halves: as in first.cuh, but r in a tile of halves.
#pragma once

#include "posattn/model/cuda/small_positional/tile.cuh"
#include "posattn/model/cuda/small_standard/first.cuh"

namespace posattn::cuda::standard {

// All tiles, with the samples that are absent: the layers behind read them.
template <int N>
__global__ void __launch_bounds__(tile_threads, 2)
    forward_first_halves(Step step, Layer layer, const float* all_tables,
                         positional::Tile<false>* output) {
  __shared__ uint32_t largest[tile_warps];
  Place place(step);
  if (place.rests()) return;
  place.end = min(place.first + step.block_tiles, step.tiles);
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
    float most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        u[i][e] = relu(u[i][e]);
        most = fmaxf(most, u[i][e]);
      }
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
    positional::Tile<false>& to = output[index];
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = positional::row_of(group + 8 * half, i);
        to.words[0][positional::word_of(row, warp) + (lane & 3)] =
            pack_halves(u[i][2 * half] * up, u[i][2 * half + 1] * up);
      }
    }
    if (lane == 0) to.largest[warp] = __float_as_uint(__uint_as_float(most_of_warp) * up);
    if (threadIdx.x == 0) to.exponent = exponent;
  }
}

}  // namespace posattn::cuda::standard

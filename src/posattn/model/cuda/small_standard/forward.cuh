// A layer l >= 1, forward:
//   z_h = r G_h + g_h,  A_h = softmax(z_h r^T) per sample,  u = r M_0^T + sum_h A_h (r M_h^T) + c,
// then the next r = relu(u). The last layer goes on to the output y = w . r + b, the loss and
// du = dy w where r > 0, which it writes instead of r.
#pragma once

#include "posattn/model/cuda/small_standard/attention.cuh"

namespace posattn::cuda::standard {

template <int N>
struct ForwardShared {
  float rows[2][tile_floats<N>];
  float scores[heads][tile_floats<N>];  // z
  float attention[coefficient_floats<N>];
};
// What the last layer needs in addition.
template <int N>
struct OutputShared {
  float products[tile_warps][N * tile_samples];  // parts of w . r
  float errors[N * tile_samples];                // y - target
};

// Sums over the tiles of a block, each complete in every lane that has it: columns 8 warp + 2 t, +
// 1 of dw, and, in the last warp, the loss and db.
struct OutputSums {
  float weight[2] = {0, 0};
  float bias = 0;
  double loss = 0;
};

// Goes from the last r (in `rows`) to du (in `rows`).
template <int N>
__device__ inline void output_layer(float (&rows)[N][4], const Step& step, const Place& place,
                                    int tile, OutputShared<N>& shared, OutputSums& sums, int warp,
                                    int lane) {
  const int g = lane >> 2, t = lane & 3, thread = static_cast<int>(threadIdx.x);
  const float* folded = step.folded + place.slot * step.folded_size;
  const float w[2] = {folded[step.decoder + 8 * warp + 2 * t],
                      folded[step.decoder + 8 * warp + 2 * t + 1]};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float first = rows[i][0] * w[0] + rows[i][1] * w[1];
    float second = rows[i][2] * w[0] + rows[i][3] * w[1];
#pragma unroll
    for (int mask = 1; mask <= 2; mask *= 2) {
      first += __shfl_xor_sync(0xffffffffu, first, mask);
      second += __shfl_xor_sync(0xffffffffu, second, mask);
    }
    if (t == 0) {
      shared.products[warp][i * tile_samples + g] = first;
      shared.products[warp][i * tile_samples + g + 8] = second;
    }
  }
  __syncthreads();
  if (thread < N * tile_samples) {
    const int node = thread / tile_samples, sample = tile * tile_samples + thread % tile_samples;
    float error = 0;
    if (sample < place.step.samples && node < place.step.real_nodes &&
        step.counted[place.slot * step.nodes + node]) {
      float y = folded[step.decoder_bias];
#pragma unroll
      for (int k = 0; k < tile_warps; ++k) y += shared.products[k][thread];
      error =
          y -
          step.targets[(int64_t{1} * place.slot * step.nodes + node) * step.sample_stride + sample];
    }
    shared.errors[thread] = error;
  }
  __syncthreads();
  const float scale = 2 * place.step.loss_scale;  // dy = scale error
  float weight[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float first = shared.errors[i * tile_samples + g] * scale;
    const float second = shared.errors[i * tile_samples + g + 8] * scale;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      weight[e] += rows[i][e] * first + rows[i][2 + e] * second;
      rows[i][e] = rows[i][e] > 0 ? first * w[e] : 0.0f;
      rows[i][2 + e] = rows[i][2 + e] > 0 ? second * w[e] : 0.0f;
    }
  }
#pragma unroll
  for (int e = 0; e < 2; ++e) {
#pragma unroll
    for (int mask = 4; mask <= 16; mask *= 2) {
      weight[e] += __shfl_xor_sync(0xffffffffu, weight[e], mask);
    }
    sums.weight[e] += weight[e];
  }
  if (warp == tile_warps - 1) {
    double loss = 0;
    float bias = 0;
    for (int k = lane; k < N * tile_samples; k += 32) {
      const float error = shared.errors[k];
      loss += double{error} * error;
      bias += error * scale;
    }
#pragma unroll
    for (int mask = 1; mask <= 16; mask *= 2) {
      loss += __shfl_xor_sync(0xffffffffu, loss, mask);
      bias += __shfl_xor_sync(0xffffffffu, bias, mask);
    }
    sums.loss += loss;
    sums.bias += bias;
  }
}

// Writes the block's loss, dw and db.
__device__ inline void write_output_sums(const Step& step, const Place& place,
                                         const OutputSums& sums, int warp, int lane) {
  float* partial = step.partials + place.part * step.folded_size;
  if (lane < 4) {
#pragma unroll
    for (int e = 0; e < 2; ++e) partial[step.decoder + 8 * warp + 2 * lane + e] = sums.weight[e];
  }
  if (warp == tile_warps - 1 && lane == 0) {
    step.losses[place.part] = sums.loss;
    partial[step.decoder_bias] = sums.bias;
  }
}

template <int N, bool last>
constexpr size_t forward_shared_bytes = sizeof(ForwardShared<N>) +
                                        (last ? sizeof(OutputShared<N>) : 0);

template <bool exact, int N, bool last>
__global__ void __launch_bounds__(tile_threads, 1) forward_layer(Step step, Layer layer) {
  const Place place(step);
  if (place.rests()) return;
  auto& shared = *reinterpret_cast<ForwardShared<N>*>(dynamic_shared());
  auto& output_shared =
      *reinterpret_cast<OutputShared<N>*>(dynamic_shared() + sizeof(ForwardShared<N>));
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const int group = lane >> 2, column = 8 * warp + 2 * (lane & 3);
  const float* folded = step.folded + place.slot * step.folded_size;
  const float* forward = layer.forward + place.slot * layer.maps_stride;
  const float* score_forward = layer.score_forward + place.slot * layer.scores_stride;
  const uint32_t attended = attended_nodes(step, place.step);
  const int64_t tiles = int64_t{1} * place.slot * step.tiles;
  OutputSums sums;

  if (place.first < place.end) {
    copy_block(shared.rows[0], layer.rows + (tiles + place.first) * tile_floats<N>, tile_floats<N>);
    commit_copies();
  }
  for (int tile = place.first; tile < place.end; ++tile) {
    const float* rows = shared.rows[(tile - place.first) & 1];
    const MapFragments<heads> score_fragments(score_forward, 0, warp, lane);
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < place.end) {
      copy_block(shared.rows[(tile - place.first + 1) & 1],
                 layer.rows + (tiles + tile + 1) * tile_floats<N>, tile_floats<N>);
      commit_copies();
    }
    {
      float z[heads][N][4];
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const float* bias = folded + layer.score_bias + h * tile_columns;
        fill(z[h], bias[column], bias[column + 1]);
      }
      add_products<exact>(z, rows, score_forward, score_fragments, warp, lane);
#pragma unroll
      for (int h = 0; h < heads; ++h) {
#pragma unroll
        for (int i = 0; i < N; ++i) store_node<exact>(shared.scores[h], i, warp, lane, z[h][i]);
      }
    }
    const MapFragments<maps> fragments(forward, 0, warp, lane);
    __syncthreads();
    dot_rows<exact, N>(rows, shared.scores[0], warp, lane, StoreScores<N>{shared.attention, warp});
    softmax_rows<N>(shared.attention, attended, warp, lane);
    __syncthreads();
    write_coefficients<N>(layer.attention + (tiles + tile) * coefficient_floats<N>,
                          shared.attention);
    float u[maps][N][4];
    fill(u[0], folded[layer.constant + column], folded[layer.constant + column + 1]);
#pragma unroll
    for (int h = 0; h < heads; ++h) fill(u[1 + h], 0, 0);
    add_products<exact>(u, rows, forward, fragments, warp, lane);
#pragma unroll
    for (int h = 0; h < heads; ++h) mix(u[0], u[1 + h], shared.attention, h, group);
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) u[0][i][e] = relu(u[0][i][e]);
    }
    if constexpr (last) {
      output_layer<N>(u[0], step, place, tile, output_shared, sums, warp, lane);
    }
    float* to = (last ? layer.gradient : layer.output) + (tiles + tile) * tile_floats<N>;
#pragma unroll
    for (int i = 0; i < N; ++i) store_node<exact>(to, i, warp, lane, u[0][i]);
  }
  if constexpr (last) write_output_sums(step, place, sums, warp, lane);
}

}  // namespace posattn::cuda::standard

// The kernel of the last layer: forward, output, loss and backward in one, so that its activations
// and errors never leave the chip.
#pragma once

#include "posattn/model/cuda/small_positional/backward.cuh"

namespace posattn::cuda::positional {

// The output y = w . r + b of a slot and its loss.
template <int N>
struct alignas(16) Decoder {
  static constexpr int outputs = N * tile_samples;
  float constant[tile_columns];  // of the last layer
  float weight[tile_columns];
  float bias, error_scale;
  int samples[N];  // those that count in the loss
  float parts[tile_warps][outputs];
  float errors[outputs];      // d loss / d y
  float sums[2][tile_warps];  // squared errors, d loss / d y

  // A barrier must follow.
  __device__ void load(const FusedLayer& layer, int slot) {
    const float* folded = layer.natural + slot * layer.folded_size;
    const int k = threadIdx.x;
    if (k < tile_columns) {
      constant[k] = folded[layer.constant + k];
      weight[k] = folded[layer.decoder + k];
    }
    const SlotStep step = layer.steps[slot];
    if (k < N) {
      const bool counts =
          k < min(layer.nodes, step.real_nodes) && layer.counted[slot * layer.nodes + k] != 0;
      samples[k] = counts ? step.samples : 0;
    }
    if (k == 0) {
      bias = folded[layer.decoder_bias];
      error_scale = 2 * step.loss_scale;
    }
  }
  // A thread looks after one output of a tile.
  struct Target {
    float value;
    bool counts;
  };
  __device__ Target target(const FusedLayer& layer, const TileWalk& walk) const {
    const int node = threadIdx.x / tile_samples;
    const int sample = walk.tile * tile_samples + threadIdx.x % tile_samples;
    if (node >= N || sample >= samples[node]) return {0, false};
    const int64_t row = int64_t{1} * walk.slot * layer.nodes + node;
    return {layer.targets[row * layer.sample_stride + sample], true};
  }
  __device__ float2 constants(const Thread& self) const { return columns(constant, self); }
  __device__ float2 weights(const Thread& self) const { return columns(weight, self); }

 private:
  __device__ static float2 columns(const float* values, const Thread& self) {
    return *reinterpret_cast<const float2*>(values + self.column());
  }
};

// The gradients of the decoder and the last constant that a thread sums over the tiles of an item.
struct DecoderGradients {
  ColumnSums weight, constant;
  float bias;

  __device__ void clear() {
    weight.clear();
    constant.clear();
    bias = 0;
  }

  __device__ void store(const FusedLayer& layer, float* out, const Thread& self) const {
    weight.store(out + layer.decoder, self);
    constant.store(out + layer.constant, self);
    if (threadIdx.x == sums_thread) out[layer.decoder_bias] = bias;
  }

  // This thread adds what the warps leave in Decoder::sums; its warp has no part in dA.
  static constexpr int sums_thread = tile_threads - 1;
};

// From the last activations r (the thread's columns) to the errors of the last layer, in a tile.
template <bool exact, int N>
__device__ inline void finish_forward(const float (&r)[N][4],
                                      const typename Decoder<N>::Target& target,
                                      Decoder<N>& decoder, float* errors,
                                      DecoderGradients& gradients, const Thread& self) {
  const float2 w = decoder.weights(self);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float y[2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      y[s] = r[i][2 * s] * w.x + r[i][2 * s + 1] * w.y;
      y[s] += __shfl_xor_sync(0xffffffffu, y[s], 1);
      y[s] += __shfl_xor_sync(0xffffffffu, y[s], 2);
    }
    if (self.t == 0) {
      decoder.parts[self.warp][i * tile_samples + self.g] = y[0];
      decoder.parts[self.warp][i * tile_samples + self.g + 8] = y[1];
    }
  }
  __syncthreads();
  const int output = threadIdx.x;
  float square = 0, error = 0;
  if (output < Decoder<N>::outputs) {
    float y = decoder.bias;
#pragma unroll
    for (int part = 0; part < tile_warps; ++part) y += decoder.parts[part][output];
    const float difference = target.counts ? y - target.value : 0;
    error = decoder.error_scale * difference;
    square = difference * difference;
    decoder.errors[output] = error;
  }
  __syncthreads();
  const NodeChunks own(self.g, self.chunk());
  float weight[2] = {}, constant[2] = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float e = decoder.errors[i * tile_samples + self.g];
    const float f = decoder.errors[i * tile_samples + self.g + 8];
    weight[0] += r[i][0] * e + r[i][2] * f;
    weight[1] += r[i][1] * e + r[i][3] * f;
    const float d[4] = {r[i][0] > 0 ? e * w.x : 0, r[i][1] > 0 ? e * w.y : 0,
                        r[i][2] > 0 ? f * w.x : 0, r[i][3] > 0 ? f * w.y : 0};
    constant[0] += d[0] + d[2];
    constant[1] += d[1] + d[3];
    store4(errors + own.at(i), operand<exact>(d[0]), operand<exact>(d[2]), operand<exact>(d[1]),
           operand<exact>(d[3]));
  }
  gradients.weight.add_tile(weight);
  gradients.constant.add_tile(constant);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    square += __shfl_xor_sync(0xffffffffu, square, step);
    error += __shfl_xor_sync(0xffffffffu, error, step);
  }
  if (self.lane == 0) {
    decoder.sums[0][self.warp] = square;
    decoder.sums[1][self.warp] = error;
  }
}

// Adds the tile's loss and bias gradient, a barrier after finish_forward.
template <int N>
__device__ inline void finish_loss(const FusedLayer& layer, const TileWalk& walk,
                                   const Decoder<N>& decoder, DecoderGradients& gradients) {
  if (threadIdx.x != DecoderGradients::sums_thread) return;
  double loss = 0;
  float bias = 0;
#pragma unroll
  for (int w = 0; w < tile_warps; ++w) {
    loss += decoder.sums[0][w];
    bias += decoder.sums[1][w];
  }
  layer.losses[walk.tile_index(layer)] = loss;
  gradients.bias += bias;
}

template <int N, bool first>
struct LastShared {
  float rows[2][tile_floats<N>];
  float errors[tile_floats<N>];
  float forward[fused_maps * map_floats];
  float backward[fused_maps * map_floats];
  AttentionRows<N> attention;
  Only<first, FirstLayer<N>> first_layer;
  Decoder<N> decoder;
};

template <bool exact, int N, bool first>
__global__ void __launch_bounds__(tile_threads, 1) last_layer(FusedLayer layer) {
  auto& shared = *reinterpret_cast<LastShared<N, first>*>(dynamic_shared());
  const Thread self;
  TileWalk walk(layer), ahead = walk;
  float input = 0;
  const auto prefetch = [&](int stage) {
    if (!ahead.done()) {
      if constexpr (first) {
        input = FirstLayer<N>::input(layer, ahead, self);
      } else {
        start_tile_copy<N>(shared.rows[stage],
                           layer.rows + ahead.tile_index(layer) * tile_floats<N>);
      }
      ahead.advance(layer);
    }
    commit_copies();
  };
  prefetch(0);

  ItemGradients<N, first> gradients;
  gradients.clear();
  DecoderGradients decoder_gradients;
  decoder_gradients.clear();
  int slot = -1;
  for (int stage = 0; !walk.done(); stage ^= 1) {
    if (walk.slot != slot) {
      slot = walk.slot;
      __syncthreads();  // all are done with the slot before
      start_weight_copy(shared.forward, layer.forward + slot * layer.packed_stride);
      commit_copies();
      start_weight_copy(shared.backward, layer.backward + slot * layer.packed_stride);
      shared.attention.load(layer.natural + slot * layer.folded_size + layer.attention,
                            layer.nodes);
      shared.decoder.load(layer, slot);
      if constexpr (first) shared.first_layer.load(layer, slot);
      __syncthreads();
    }
    commit_copies();
    if constexpr (first) {
      shared.first_layer.template make_rows<exact>(shared.rows[stage], stage, input, self);
    }
    wait_copies<1>();  // all but the backward weights
    __syncthreads();
    prefetch(stage ^ 1);
    const auto target = shared.decoder.target(layer, walk);
    const float* rows = shared.rows[stage];
    {
      float products[fused_maps][N][4];
      begin_product(products, shared.decoder.constants(self));
      multiply_tile<exact, N>(products, rows, SharedWeights<exact>(shared.forward, self), self);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        mix_forward(products, shared.attention, i);
#pragma unroll
        for (int e = 0; e < 4; ++e) products[0][i][e] = fmaxf(products[0][i][e], 0);
      }
      finish_forward<exact, N>(products[0], target, shared.decoder, shared.errors,
                               decoder_gradients, self);
    }
    wait_copies<1>();  // all but the next tile
    __syncthreads();
    backward_tile<exact, N, first, 1>(layer, walk, rows, shared.errors, shared.errors,
                                      shared.backward, shared.attention, shared.first_layer, stage,
                                      gradients, self);
    finish_loss(layer, walk, shared.decoder, decoder_gradients);
    if (walk.ends_item(layer)) {
      float* out = layer.partials + walk.item_index(layer) * layer.folded_size;
      gradients.store(layer, out, self);
      decoder_gradients.store(layer, out, self);
      gradients.clear();
      decoder_gradients.clear();
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::positional

// The kernel of the last layer: forward, output, loss and backward in one, so that its activations
// and errors never leave the chip.
#pragma once

#include "posattn/model/cuda/small_positional/backward.cuh"

namespace posattn::cuda::positional {

// The output y = w . r + b of a slot and its loss. A thread looks after one output of a tile, that
// of row threadIdx.x.
struct alignas(16) Decoder {
  float constant[columns];  // of the last layer
  float weight[columns];
  float bias, error_scale;
  float largest_weight;
  int samples[kernel_nodes];  // those that count in the loss
  alignas(16) float parts[4][tile_rows];
  alignas(16) float errors[tile_rows];  // d loss / d y
  uint32_t largest[warps];              // bits of the largest of them
  float sums[2][warps];                 // squared errors, d loss / d y

  // A barrier must follow.
  __device__ void load(const FusedLayer& layer, int slot) {
    const float* folded = layer.folded + slot * layer.folded_size;
    const int k = threadIdx.x;
    if (k < columns) {
      constant[k] = folded[layer.constant + k];
      weight[k] = folded[layer.decoder + k];
    }
    const SlotStep step = layer.steps[slot];
    if (k < kernel_nodes) {
      const int node = Place(layer, k, 0).node;
      const bool counts =
          node < min(layer.nodes, step.real_nodes) && layer.counted[slot * layer.nodes + node] != 0;
      samples[k] = counts ? step.samples : 0;
    }
    if (k < 32) {
      const float* w = folded + layer.decoder;
      const float most = fmaxf(fabsf(w[k]), fabsf(w[k + 32]));
      const uint32_t bits = warp_maximum(__float_as_uint(most));
      if (k == 0) {
        largest_weight = __uint_as_float(bits);
        bias = folded[layer.decoder_bias];
        error_scale = 2 * step.loss_scale;
      }
    }
  }
  struct Target {
    float value;
    bool counts;
  };
  __device__ Target target(const FusedLayer& layer, const TileWalk& walk) const {
    const int row = threadIdx.x;
    if (row >= tile_rows) return {0, false};
    const int node = node_of_row(row);
    const Place place(layer, node, walk.tile * tile_samples + sample_of_row(row));
    if (place.sample >= samples[node]) return {0, false};
    const int64_t of_node = int64_t{1} * walk.slot * layer.nodes + place.node;
    return {layer.targets[of_node * layer.sample_stride + place.sample], true};
  }
  __device__ static float2 of_columns(const float* values, const Thread& self) {
    return *reinterpret_cast<const float2*>(values + self.column());
  }
};

// This thread adds what the warps leave in Decoder::sums.
constexpr int sums_thread = threads - 1;

// From the last activations r (the thread's columns of its nine row tiles) to the errors of the
// last layer, in a tile. A barrier must follow.
template <bool exact, class ColumnParts>
__device__ inline Range finish_forward(const float (&r)[9][4], const Decoder::Target& target,
                                       Decoder& decoder, Tile<exact>& errors, ColumnParts& parts,
                                       int decoder_vector, const Thread& self) {
  const float2 w = Decoder::of_columns(decoder.weight, self);
  float y[8][2];
#pragma unroll
  for (int s = 0; s < 8; ++s) {
#pragma unroll
    for (int e = 0; e < 2; ++e) y[s][e] = r[s][e] * w.x + r[s][2 + e] * w.y;
  }
  sum_samples(y, self);
  float(&part)[tile_rows] = decoder.parts[self.block];
  *reinterpret_cast<float2*>(&part[8 * (8 * self.half + self.g) + 2 * self.t]) =
      make_float2(y[0][0], y[0][1]);
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const float sum = sum_over_columns(r[8][e] * w.x + r[8][2 + e] * w.y);
    if (self.g == 0) part[128 + 8 * self.half + 2 * self.t + e] = sum;
  }
  __syncthreads();
  const int output = threadIdx.x;
  float square = 0, error = 0;
  if (output < tile_rows) {
    float sum = decoder.bias;
#pragma unroll
    for (int b = 0; b < 4; ++b) sum += decoder.parts[b][output];
    const float difference = target.counts ? sum - target.value : 0;
    error = decoder.error_scale * difference;
    square = difference * difference;
    decoder.errors[output] = error;
  }
  const uint32_t largest = warp_maximum(__float_as_uint(fabsf(error)));
  if (self.lane == 0) decoder.largest[self.warp] = largest;
  __syncthreads();
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < warps; ++i) most = max(most, decoder.largest[i]);
  const float bound = __uint_as_float(most) * decoder.largest_weight;
  const int exponent = clamped(7 - exponent_of(bound), most_exponent);
  const float up = power_of_two(exponent);

  const OwnPlaces own(self);
  float weight[2] = {}, constant[2] = {};
#pragma unroll
  for (int s = 0; s <= 8; ++s) {
    const int q = row_tile_of(s, self);
    const float2 e = *reinterpret_cast<const float2*>(&decoder.errors[8 * q + 2 * self.t]);
    weight[0] += r[s][0] * e.x + r[s][1] * e.y;
    weight[1] += r[s][2] * e.x + r[s][3] * e.y;
    const float open[4] = {r[s][0] > 0 ? e.x : 0, r[s][1] > 0 ? e.y : 0, r[s][2] > 0 ? e.x : 0,
                           r[s][3] > 0 ? e.y : 0};
    constant[0] += open[0] + open[1];
    constant[1] += open[2] + open[3];
    const float a = w.x * up, b = w.y * up;
    store_own<exact>(errors.words[0] + q * row_tile_words, own,
                     {open[0] * a, open[1] * a, open[2] * b, open[3] * b});
  }
  parts.store(decoder_vector, weight[0], weight[1], self);
  parts.store(decoder_vector + 1, w.x * constant[0], w.y * constant[1], self);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    square += __shfl_xor_sync(0xffffffffu, square, step);
    error += __shfl_xor_sync(0xffffffffu, error, step);
  }
  if (self.lane == 0) {
    decoder.sums[0][self.warp] = square;
    decoder.sums[1][self.warp] = error;
  }
  return {exponent, bound * up};
}

// Adds the tile's loss and bias gradient, a barrier after finish_forward.
__device__ inline void finish_loss(const FusedLayer& layer, const TileWalk& walk,
                                   const Decoder& decoder, float& bias_gradient) {
  if (threadIdx.x != sums_thread) return;
  double loss = 0;
  float bias = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    loss += decoder.sums[0][w];
    bias += decoder.sums[1][w];
  }
  layer.losses[walk.tile_index(layer)] = loss;
  bias_gradient += bias;
}

template <bool exact, bool first>
struct LastShared {
  Tile<exact> rows[first ? 1 : 2];
  Tile<exact> errors;
  Weights<exact> forward;
  BackwardScratch<exact, true, first> scratch;
  Decoder decoder;
};

template <bool exact, bool first>
__global__ void __launch_bounds__(threads, 1) last_layer(FusedLayer layer) {
  auto& shared = *reinterpret_cast<LastShared<exact, first>*>(dynamic_shared());
  auto& scratch = shared.scratch;
  const Thread self;
  TileWalk walk(layer), ahead = walk;
  float input = 0;
  const auto prefetch = [&](int stage) {
    if (!ahead.done()) {
      if constexpr (first) {
        input = FirstLayer::input(layer, ahead, self);
      } else {
        shared.rows[stage].start_copy(reinterpret_cast<const Tile<exact>*>(layer.rows) +
                                      ahead.tile_index(layer));
      }
      ahead.advance(layer);
    }
    commit_copies();
  };
  prefetch(0);

  ItemGradients<true, first> gradients;
  gradients.clear();
  float bias_gradient = 0;
  typename Weights<exact>::Bounds forward_bounds = {}, backward_bounds = {};
  int slot = -1;
  for (int stage = 0; !walk.done(); stage ^= 1) {
    if (walk.slot != slot) {
      slot = walk.slot;
      const float* folded = layer.folded + slot * layer.folded_size;
      forward_bounds =
          shared.forward.template load<false>(folded + layer.maps, folded + layer.constant, self);
      backward_bounds =
          scratch.weights.template load<true>(folded + layer.maps, folded + layer.constant, self);
      scratch.attention.load(layer, folded + layer.attention);
      shared.decoder.load(layer, slot);
      if constexpr (first) scratch.first_layer.load(layer, slot, self);
      __syncthreads();
    }
    Tile<exact>& rows = shared.rows[first ? 0 : stage];
    Range range;
    if constexpr (first) {
      scratch.first_layer.make_inputs(stage, input, self);
      __syncthreads();
      range = scratch.first_layer.template make_rows<exact>(rows, stage, self);
    }
    wait_copies<0>();
    __syncthreads();
    if constexpr (!first) range = rows.range();
    prefetch(stage ^ 1);
    const auto target = shared.decoder.target(layer, walk);
    Range error_range;
    {
      float r[9][4];
      const float2 constant = Decoder::of_columns(shared.decoder.constant, self);
      const float down = power_of_two(clamped(-range.exponent - forward_bounds.exponent, 120));
      multiply_and_mix<exact, false, 8>(
          rows, shared.forward.of(self), scratch.attention, self, [](int, const Left<exact>&) {},
          [&](int s, const float(&products)[4]) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              r[s][e] = relu(products[e] * down + (e < 2 ? constant.x : constant.y));
            }
          });
      error_range = finish_forward(r, target, shared.decoder, shared.errors, scratch.parts,
                                   Vectors<true, first>::decoder, self);
    }
    __syncthreads();
    backward_tile<exact, true, first>(layer, walk, rows, range, shared.errors, error_range,
                                      backward_bounds, scratch, stage, gradients, self);
    finish_loss(layer, walk, shared.decoder, bias_gradient);
    if (walk.ends_item(layer)) {
      float* out = layer.partials + walk.item_index(layer) * layer.folded_size;
      gradients.store(layer, out, self);
      if (threadIdx.x == sums_thread) out[layer.decoder_bias] = bias_gradient;
      gradients.clear();
      bias_gradient = 0;
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::positional

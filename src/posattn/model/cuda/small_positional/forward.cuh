// The forward kernel: r -> relu(u), layers 1 to L - 1, where L is the last.
#pragma once

#include "posattn/model/cuda/small_positional/first.cuh"

namespace posattn::cuda::positional {

template <bool exact, bool first>
struct ForwardShared {
  static constexpr int stages = first ? 1 : 3;
  Tile<exact> rows[stages];
  Weights<exact> weights;
  Attention<exact> attention;
  Only<first, FirstLayer> first_layer;
};
template <bool exact>
constexpr int forward_blocks = exact ? 1 : 2;  // of a multiprocessor

template <bool exact, bool first>
__global__ void __launch_bounds__(threads, forward_blocks<exact>) forward_layer(FusedLayer layer) {
  using Shared = ForwardShared<exact, first>;
  constexpr int stages = Shared::stages;
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const Thread self;
  const OwnPlaces own(self);

  TileWalk walk(layer), ahead = walk;
  float input = 0;
  // Tile number s of the block goes to stage s % stages.
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
  if constexpr (first) {
    prefetch(0);
  } else {
    for (int s = 0; s < stages - 1; ++s) prefetch(s);
  }

  MapOperands<exact> operands;
  typename Weights<exact>::Bounds bounds = {};
  float2 constant = make_float2(0, 0);
  int slot = -1;
  for (int stage = 0, buffer = 0; !walk.done(); walk.advance(layer), buffer ^= 1) {
    if (walk.slot != slot) {
      slot = walk.slot;
      const float* folded = layer.folded + slot * layer.folded_size;
      constant = *reinterpret_cast<const float2*>(folded + layer.constant + self.column());
      bounds =
          shared.weights.template load<false>(folded + layer.maps, folded + layer.constant, self);
      shared.attention.load(layer, folded + layer.attention);
      if constexpr (first) shared.first_layer.load(layer, slot, self);
      __syncthreads();
      operands = shared.weights.of(self);
    }
    Tile<exact>& rows = shared.rows[stage];
    Range range;
    if constexpr (first) {
      shared.first_layer.make_inputs(buffer, input, self);
      __syncthreads();  // and all are done with the tile before
      range = shared.first_layer.template make_rows<exact>(rows, buffer, self);
    } else {
      wait_copies<stages - 2>();
    }
    __syncthreads();  // the tile is there, and the one that the next copy replaces is done with
    if constexpr (!first) range = rows.range();
    prefetch(first || stage > 0 ? stage - 1 : stages - 1);

    const int before = range.exponent + bounds.exponent;
    const Narrowing narrowing(
        before, bounds.row * range.largest + bounds.constant * power_of_two(clamped(before, 120)));
    const float up = power_of_two(narrowing.exponent);
    const float c[2] = {constant.x * up, constant.y * up};
    auto* out = reinterpret_cast<Tile<exact>*>(layer.next_rows) + walk.tile_index(layer);
    float most = 0;
    multiply_and_mix<exact, false, 2>(
        rows, operands, shared.attention, self, [](int, const Left<exact>&) {},
        [&](int s, const float(&products)[4]) {
          float u[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            u[e] = relu(products[e] * narrowing.factor + c[e >> 1]);
            most = fmaxf(most, u[e]);
          }
          store_own<exact>(out->words[0] + row_tile_of(s, self) * row_tile_words, own, u);
        });
    out->set_range(narrowing.exponent, most, self);
    if (++stage == stages) stage = 0;
  }
}

}  // namespace posattn::cuda::positional

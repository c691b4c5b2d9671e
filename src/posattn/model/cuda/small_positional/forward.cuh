// The forward kernel: r -> relu(u), layers 1 to L - 1, where L is the last.
#pragma once

#include "posattn/model/cuda/small_positional/first.cuh"

namespace posattn::cuda::positional {

template <int N, bool first>
struct ForwardShared {
  static constexpr int stages = first ? 2 : 3;
  float rows[stages][tile_floats<N>];
  AttentionRows<N> attention;
  Only<first, FirstLayer<N>> first_layer;
};

template <bool exact, int N, bool first>
__global__ void __launch_bounds__(tile_threads, 1) forward_layer(FusedLayer layer) {
  using Shared = ForwardShared<N, first>;
  constexpr int stages = Shared::stages;
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const Thread self;
  const NodeChunks own(self.g, self.chunk());

  TileWalk walk(layer), ahead = walk;
  float input = 0;
  // Tile number s of the block goes to stage s % stages.
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
  for (int s = 0; s < stages - 1; ++s) prefetch(s);

  RegisterWeights weights;
  float2 constant = make_float2(0, 0);
  int slot = -1;
  for (int stage = 0; !walk.done(); walk.advance(layer)) {
    if (walk.slot != slot) {
      slot = walk.slot;
      const float* folded = layer.natural + slot * layer.folded_size;
      weights.load(layer.forward + slot * layer.packed_stride, self);
      constant = *reinterpret_cast<const float2*>(folded + layer.constant + self.column());
      __syncthreads();  // all are done with the slot before
      shared.attention.load(folded + layer.attention, layer.nodes);
      if constexpr (first) shared.first_layer.load(layer, slot);
      __syncthreads();
    }
    float* rows = shared.rows[stage];
    if constexpr (first) {
      shared.first_layer.template make_rows<exact>(rows, stage, input, self);
    } else {
      wait_copies<stages - 2>();
    }
    __syncthreads();  // the tile is there, and the one that the next copy replaces is done with
    prefetch(stage == 0 ? stages - 1 : stage - 1);

    float products[fused_maps][N][4];
    begin_product(products, constant);
    multiply_tile<exact, N>(products, rows, weights, self);
    float* out = layer.next_rows + walk.tile_index(layer) * tile_floats<N>;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      mix_forward(products, shared.attention, i);
      const float(&u)[4] = products[0][i];
      store4(out + own.at(i), operand<exact>(fmaxf(u[0], 0)), operand<exact>(fmaxf(u[2], 0)),
             operand<exact>(fmaxf(u[1], 0)), operand<exact>(fmaxf(u[3], 0)));
    }
    if (++stage == stages) stage = 0;
  }
}

}  // namespace posattn::cuda::positional

// The backward kernel: r and the errors of u -> gradients and the errors of the layer before.
#pragma once

#include "posattn/model/cuda/small_positional/first.cuh"
#include "posattn/model/cuda/small_positional/gradients.cuh"

namespace posattn::cuda::positional {

// The gradients that a thread sums over the tiles of an item.
template <int N, bool first>
struct ItemGradients {
  MapGradients maps;
  float attention;
  ColumnSums previous_constant;
  Only<first, FirstGradient<N>> first_layer;

  __device__ void clear() {
    maps.clear();
    attention = 0;
    previous_constant.clear();
    if constexpr (first) first_layer.clear();
  }

  __device__ void store(const FusedLayer& layer, float* out, const Thread& self) const {
    maps.store(out + layer.maps, self);
    store_attention<N>(out + layer.attention, attention, layer.nodes);
    previous_constant.store(out + layer.previous_constant, self);
    if constexpr (first) {
      store_attention<N>(out + layer.first_attention, first_layer.attention, layer.nodes);
#pragma unroll
      for (int m = 0; m < fused_maps; ++m) {
        first_layer.maps[m].store(out + layer.first_maps + m * tile_columns, self);
      }
    }
  }
};

// From the errors of a layer to its gradients and the errors of the layer before. The scratch has
// AttentionGradient<N>::scratch_floats<scratch_parts> for each warp; the whole one (of one part) is
// as large as a tile and may be that of the errors. Whoever writes it again needs a barrier before.
template <bool exact, int N, bool first, int scratch_parts>
__device__ inline void backward_tile(const FusedLayer& layer, const TileWalk& walk,
                                     const float* rows, const float* errors, float* scratch,
                                     const float* weights, const AttentionRows<N>& attention,
                                     const Only<first, FirstLayer<N>>& first_layer, int buffer,
                                     ItemGradients<N, first>& gradients, const Thread& self) {
  using Attention = AttentionGradient<N>;
  constexpr int warp_floats = Attention::template scratch_floats<scratch_parts>;
  static_assert(2 * Attention::part_floats <= warp_floats);
  float* own_scratch = scratch + self.warp * warp_floats;

  gradients.maps.template add_tile<exact, N>(rows, errors, attention, self);
  float products[fused_maps][N][4];
  begin_product(products, make_float2(0, 0));
  multiply_tile<exact, N>(products, errors, SharedWeights<exact>(weights, self), self);
  if constexpr (scratch_parts == 1) __syncthreads();  // all are done with the errors
  Attention::template make<exact, scratch_parts>(products, rows, own_scratch, self);
  mix_backward(products, attention);

  const NodeChunks own(self.g, self.chunk());
  float constant[2] = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float4 r = load4(rows + own.at(i));
    float(&d)[4] = products[0][i];
    d[0] = open<exact>(r.x) ? d[0] : 0;
    d[1] = open<exact>(r.z) ? d[1] : 0;
    d[2] = open<exact>(r.y) ? d[2] : 0;
    d[3] = open<exact>(r.w) ? d[3] : 0;
    constant[0] += d[0] + d[2];
    constant[1] += d[1] + d[3];
    if constexpr (!first) {
      store4(layer.previous_errors + walk.tile_index(layer) * tile_floats<N> + own.at(i),
             operand<exact>(d[0]), operand<exact>(d[2]), operand<exact>(d[1]),
             operand<exact>(d[3]));
    }
  }
  gradients.previous_constant.add_tile(constant);
  if constexpr (first) {
    gradients.first_layer.template add_tile<exact>(products[0], first_layer, buffer,
                                                   own_scratch + Attention::part_floats, self);
  }
  __syncthreads();
  gradients.attention += sum_over_warps<N>(scratch, warp_floats);
  if constexpr (first) {
    gradients.first_layer.attention +=
        sum_over_warps<N>(scratch + Attention::part_floats, warp_floats);
  }
}

__device__ inline void start_weight_copy(float* shared, const float* packed) {
  start_block_copy<fused_maps * map_floats / (4 * tile_threads)>(shared, packed);
}

template <int N, bool first>
struct BackwardShared {
  static constexpr int scratch_parts = 2;
  float rows[2][tile_floats<N>];
  float errors[2][tile_floats<N>];
  float weights[fused_maps * map_floats];
  float scratch[tile_warps * AttentionGradient<N>::template scratch_floats<scratch_parts>];
  AttentionRows<N> attention;
  Only<first, FirstLayer<N>> first_layer;
};

template <bool exact, int N, bool first>
__global__ void __launch_bounds__(tile_threads, 1) backward_layer(FusedLayer layer) {
  using Shared = BackwardShared<N, first>;
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const Thread self;
  TileWalk walk(layer), ahead = walk;
  float input = 0;
  const auto prefetch = [&](int stage) {
    if (!ahead.done()) {
      const int64_t offset = ahead.tile_index(layer) * tile_floats<N>;
      if constexpr (first) {
        input = FirstLayer<N>::input(layer, ahead, self);
      } else {
        start_tile_copy<N>(shared.rows[stage], layer.rows + offset);
      }
      start_tile_copy<N>(shared.errors[stage], layer.errors + offset);
      ahead.advance(layer);
    }
    commit_copies();
  };
  prefetch(0);

  ItemGradients<N, first> gradients;
  gradients.clear();
  int slot = -1;
  for (int stage = 0; !walk.done(); stage ^= 1) {
    if (walk.slot != slot) {
      slot = walk.slot;
      const float* folded = layer.natural + slot * layer.folded_size;
      __syncthreads();  // all are done with the slot before
      start_weight_copy(shared.weights, layer.backward + slot * layer.packed_stride);
      commit_copies();
      shared.attention.load(folded + layer.attention, layer.nodes);
      if constexpr (first) shared.first_layer.load(layer, slot);
      __syncthreads();
    }
    if constexpr (first) {
      shared.first_layer.template make_rows<exact>(shared.rows[stage], stage, input, self);
    }
    wait_copies<0>();
    __syncthreads();
    prefetch(stage ^ 1);
    backward_tile<exact, N, first, Shared::scratch_parts>(
        layer, walk, shared.rows[stage], shared.errors[stage], shared.scratch, shared.weights,
        shared.attention, shared.first_layer, stage, gradients, self);
    if (walk.ends_item(layer)) {
      gradients.store(layer, layer.partials + walk.item_index(layer) * layer.folded_size, self);
      gradients.clear();
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::positional

// The backward kernel: r and the errors of u -> gradients and the errors of the layer before.
#pragma once

#include "posattn/model/cuda/small_positional/first.cuh"
#include "posattn/model/cuda/small_positional/gradients.cuh"

namespace posattn::cuda::positional {

// Sums of columns that a kernel makes: the constant of the layer before, of layer 0 by nodes; the
// decoder's weights and the layer's own constant; the maps of layer 0.
template <bool last, bool first>
struct Vectors {
  static constexpr int previous_constants = first ? kernel_nodes : 1;
  static constexpr int decoder = previous_constants, constant = decoder + 1;
  static constexpr int first_maps = previous_constants + (last ? 2 : 0);
  static constexpr int count = first_maps + (first ? maps : 0);

  // Where a vector goes; none: -1.
  __device__ static int64_t place(const FusedLayer& layer, int vector) {
    if (vector >= count) return -1;
    if constexpr (first) {
      if (vector >= first_maps) {
        return layer.first.weight_gradients + (vector - first_maps) * columns;
      }
      if (vector < previous_constants) {
        const bool has_place =
            vector < (layer.first.constant_stride == 0 ? 1 : min(layer.nodes, kernel_nodes));
        return has_place ? layer.first.constant_gradients + vector * columns : -1;
      }
    }
    if (vector == 0) return layer.previous_constant;
    return vector == decoder ? layer.decoder : layer.constant;
  }
};

// The gradients that a thread sums over the tiles of an item.
template <bool last, bool first>
struct ItemGradients {
  using V = Vectors<last, first>;
  static constexpr int vector_rounds = (V::count + 3) / 4;
  MapGradients maps_sums;
  float attention, first_attention;
  float vectors[vector_rounds];

  __device__ void clear() {
    maps_sums.clear();
    attention = first_attention = 0;
#pragma unroll
    for (float& v : vectors) v = 0;
  }

  __device__ void store(const FusedLayer& layer, float* out, const Thread& self) const {
    maps_sums.store(out + layer.maps, self);
    store_attention(out + layer.attention, attention, layer.nodes);
    if constexpr (first) {
      store_attention(out + layer.first_attention, first_attention, layer.nodes);
    }
#pragma unroll
    for (int i = 0; i < vector_rounds; ++i) {
      const int64_t place = V::place(layer, Parts<V::count>::vector_of(i));
      if (place >= 0) out[place + static_cast<int>(threadIdx.x) % columns] = vectors[i];
    }
  }
};

// What backward_tile needs in addition to the tiles.
template <bool exact, bool last, bool first>
struct alignas(16) BackwardScratch {
  Weights<exact> weights;
  Attention<exact> attention;
  Parts<Vectors<last, first>::count> parts;
  Only<first, FirstLayer> first_layer;
  Only<first, FirstScratch> first_scratch;
};

// Whether the halves of a pair of activations are those of open ReLUs.
__device__ inline bool first_open(uint32_t pair) { return (pair & 0xffffu) != 0; }
__device__ inline bool second_open(uint32_t pair) { return pair >> 16 != 0; }

// From the errors of a layer to its gradients and the errors of the layer before. Ends with a
// barrier but for what the item's gradients read.
template <bool exact, bool last, bool first>
__device__ inline void backward_tile(const FusedLayer& layer, const TileWalk& walk,
                                     const Tile<exact>& rows, Range row_range,
                                     const Tile<exact>& errors, Range error_range,
                                     typename Weights<exact>::Bounds bounds,
                                     BackwardScratch<exact, last, first>& scratch, int buffer,
                                     ItemGradients<last, first>& gradients, const Thread& self) {
  using V = Vectors<last, first>;
  gradients.maps_sums.template add_tile<exact>(
      rows, errors, power_of_two(-row_range.exponent - error_range.exponent), scratch.attention,
      self);

  const int before = error_range.exponent + bounds.exponent;
  const Narrowing narrowing(before, kernel_nodes * bounds.row * error_range.largest);
  const OwnPlaces own(self);
  Only<!first, Tile<exact>*> out{};
  if constexpr (!first) {
    out = reinterpret_cast<Tile<exact>*>(layer.previous_errors) + walk.tile_index(layer);
  }
  Only<first, FirstProducts> first_products;
  AttentionGradient<exact> attention;
  float constant[2] = {}, most = 0;
  multiply_and_mix<exact, true, first ? 8 : 2>(
      errors, scratch.weights.of(self), scratch.attention, self,
      [&](int s, const Left<exact>& products) { attention.add(s, products, rows.words[0], self); },
      [&](int s, const float(&products)[4]) {
        const int row_tile = row_tile_of(s, self) * row_tile_words;
        const uint32_t even = rows.words[0][row_tile + own.even];
        const uint32_t odd = rows.words[0][row_tile + own.odd];
        float d[4] = {first_open(even) ? products[0] : 0, first_open(odd) ? products[1] : 0,
                      second_open(even) ? products[2] : 0, second_open(odd) ? products[3] : 0};
        if constexpr (first) {
          first_products.add(s, d, scratch.first_layer, buffer, self);
        } else {
          constant[0] += d[0] + d[1];
          constant[1] += d[2] + d[3];
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            d[e] *= narrowing.factor;
            most = fmaxf(most, fabsf(d[e]));
          }
          store_own<exact>(out->words[0] + row_tile, own, d);
        }
      });
  if constexpr (!first) out->set_range(narrowing.exponent, most, self);
  const float down = power_of_two(clamped(-before, 120));
  attention.store(scratch.parts.attention[self.warp], self);
  if constexpr (!first) {
    scratch.parts.store(0, down * constant[0], down * constant[1], self);
  } else {
    const float(&of_nodes)[4] = first_products.constants;
    const float(&ninth)[2] = first_products.ninth_constant;
    scratch.parts.store_nodes(
        {down * of_nodes[0], down * of_nodes[1], down * of_nodes[2], down * of_nodes[3]}, self);
    scratch.parts.store(8, down * ninth[0], down * ninth[1], self);
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      const float(&sums)[2] = first_products.maps_sums[m];
      scratch.parts.store(V::first_maps + m, down * sums[0], down * sums[1], self);
    }
    scratch.first_scratch.store(first_products, self);
  }
  __syncthreads();
  gradients.attention +=
      down * power_of_two(-row_range.exponent) * scratch.parts.attention_sum(layer);
#pragma unroll
  for (int i = 0; i < ItemGradients<last, first>::vector_rounds; ++i) {
    float sum = scratch.parts.vector_sum(Parts<V::count>::vector_of(i));
    if constexpr (first) {
      const int vector = Parts<V::count>::vector_of(i);
      if (layer.first.constant_stride == 0 && vector == 0) {  // one constant for all nodes
#pragma unroll
        for (int node = 1; node < kernel_nodes; ++node) sum += scratch.parts.vector_sum(node);
      } else if (layer.paired && vector < 4) {
        sum += scratch.parts.vector_sum(4 + vector);
      }
    }
    gradients.vectors[i] += sum;
  }
  if constexpr (first) {
    gradients.first_attention +=
        down * scratch.first_scratch.attention(layer, scratch.first_layer, buffer);
  }
}

template <bool exact, bool first>
struct BackwardShared {
  Tile<exact> rows[first ? 1 : 2];
  Tile<exact> errors[2];
  BackwardScratch<exact, false, first> scratch;
};

template <bool exact, bool first>
__global__ void __launch_bounds__(threads, 1) backward_layer(FusedLayer layer) {
  using Shared = BackwardShared<exact, first>;
  auto& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  auto& scratch = shared.scratch;
  const Thread self;
  TileWalk walk(layer), ahead = walk;
  float input = 0;
  const auto prefetch = [&](int stage) {
    if (!ahead.done()) {
      const int64_t tile = ahead.tile_index(layer);
      if constexpr (first) {
        input = FirstLayer::input(layer, ahead, self);
      } else {
        shared.rows[stage].start_copy(reinterpret_cast<const Tile<exact>*>(layer.rows) + tile);
      }
      shared.errors[stage].start_copy(reinterpret_cast<const Tile<exact>*>(layer.errors) + tile);
      ahead.advance(layer);
    }
    commit_copies();
  };
  prefetch(0);

  ItemGradients<false, first> gradients;
  gradients.clear();
  typename Weights<exact>::Bounds bounds = {};
  int slot = -1;
  for (int stage = 0; !walk.done(); stage ^= 1) {
    if (walk.slot != slot) {
      slot = walk.slot;
      const float* folded = layer.folded + slot * layer.folded_size;
      bounds =
          scratch.weights.template load<true>(folded + layer.maps, folded + layer.constant, self);
      scratch.attention.load(layer, folded + layer.attention);
      if constexpr (first) scratch.first_layer.load(layer, slot, self);
      __syncthreads();
    }
    Tile<exact>& rows = shared.rows[first ? 0 : stage];
    Range row_range;
    if constexpr (first) {
      scratch.first_layer.make_inputs(stage, input, self);
      __syncthreads();
      row_range = scratch.first_layer.template make_rows<exact>(rows, stage, self);
    }
    wait_copies<0>();
    __syncthreads();
    if constexpr (!first) row_range = rows.range();
    prefetch(stage ^ 1);
    const Tile<exact>& errors = shared.errors[stage];
    backward_tile<exact, false, first>(layer, walk, rows, row_range, errors, errors.range(), bounds,
                                       scratch, stage, gradients, self);
    if (walk.ends_item(layer)) {
      gradients.store(layer, layer.partials + walk.item_index(layer) * layer.folded_size, self);
      gradients.clear();
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::positional

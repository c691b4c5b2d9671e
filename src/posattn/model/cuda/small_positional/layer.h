// What the kernels of the fused positional engine take, and which kernels there are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::positional {

// One layer l >= 1 of every slot: u = r M_0^T + sum_h A_h (r M_h^T) + c. Activations and errors lie
// in tiles, [slots, tiles, tile_floats<N>]. An *item* is a run of tiles of a slot, where there are
// gradients a tile or a group of them; a block takes consecutive items, so that a slot's weights
// are loaded once for many tiles.
struct FusedLayer {
  const SlotStep* steps;
  const float* inputs;
  const float* targets;
  const uint8_t* counted;

  const float* natural;   // [slots, folded_size]
  const float* forward;   // packed maps of this layer, slot 0
  const float* backward;  // the same
  int64_t folded_size, packed_stride;
  // Offsets into the folded weights: this layer's, those of layer 0, the decoder's.
  int64_t maps, constant, attention, previous_constant;
  int64_t first_maps, first_constant, first_attention, decoder, decoder_bias;

  const float* rows;       // r of this layer (layer 1 makes its own)
  float* next_rows;        // relu(u)
  const float* errors;     // d loss / d u of this layer (the last one makes its own)
  float* previous_errors;  // d loss / d u of the layer before; may be where `rows` is

  float* partials;  // gradients [slots, items, folded_size]
  double* losses;   // squared errors [slots, tiles]

  int slots, nodes, sample_stride;
  int tiles, tiles_per_item, items;  // of a slot
  int items_per_block;
  bool descending;  // the order in which a block takes its items
};

// The kernels for one precision and one number of nodes. `first`: layer 1, which makes its rows
// from the inputs and gives the gradient of layer 0 as well.
struct FusedKernels {
  using Kernel = void (*)(FusedLayer);
  struct Sized {
    Kernel kernel;
    size_t shared_bytes;
  };
  Sized forward[2], last[2], backward[2];  // [first]
  int nodes;
};

// nodes: 9, 5 or 3; smaller models leave the last nodes absent.
template <int nodes>
FusedKernels fused_kernels(Precision precision);

}  // namespace posattn::cuda::positional

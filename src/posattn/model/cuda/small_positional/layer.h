// What the kernels of the fused positional engine take, and which kernels there are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::positional {

constexpr int kernel_nodes = 9;  // smaller models leave the last nodes absent
// Samples of a kernel. With up to four nodes two samples of the model lie side by side in one,
// as nodes 0 to 3 and 4 to 7 that do not attend to each other.
constexpr int tile_samples = 16;
constexpr int most_paired_nodes = 4;

// Layer 0: r_i = relu(sum_m a_m x_m,i + c_i). Without positions in the input c is the same for all
// nodes.
struct FirstTables {
  const float* weights;    // a [3, 64] of slot 0
  const float* constants;  // c [64], or [nodes, 64]
  int64_t slot_stride;
  int constant_stride;  // from a node to the next: 0 or 64
  // Where da and dc, of all nodes together or each, lie in a folded gradient.
  int64_t weight_gradients, constant_gradients;
};

// One layer l >= 1 of every slot: u = r M_0^T + sum_h A_h (r M_h^T) + c. Activations and errors lie
// in tiles (tile.cuh), [slots, tiles]. An *item* is a run of tiles of a slot, where there are
// gradients a tile or a group of them; a block takes consecutive items, so that a slot's weights
// are loaded once for many tiles.
struct FusedLayer : LayerPlaces {
  const SlotStep* steps;
  const float* inputs;
  const float* targets;
  const uint8_t* counted;

  const float* folded;  // [slots, folded_size]
  int64_t folded_size;
  // Where the layer before, layer 0 and the decoder lie in the folded weights.
  int64_t previous_constant, first_attention, decoder, decoder_bias;
  FirstTables first;

  const char* rows;       // r of this layer (layer 1 makes its own)
  char* next_rows;        // relu(u)
  const char* errors;     // d loss / d u of this layer (the last one makes its own)
  char* previous_errors;  // d loss / d u of the layer before; may be where `rows` is

  float* partials;  // gradients [slots, items, folded_size]
  double* losses;   // squared errors [slots, tiles]

  int slots, nodes, sample_stride;
  bool paired;                       // two samples in one
  int tiles, tiles_per_item, items;  // of a slot
  int items_per_block;
  bool descending;  // the order in which a block takes its items
};

// How a kernel for layers of the type L is launched.
template <class L>
struct LayerKernel {
  void (*kernel)(L);
  int64_t shared_bytes;
  int blocks_per_processor;
};

// The kernels for one precision. `first`: layer 1, which makes its rows from the inputs and gives
// the gradient of layer 0 as well.
struct FusedKernels {
  LayerKernel<FusedLayer> forward[2], last[2], backward[2];  // [first]
  int64_t tile_bytes;
  int threads;  // of a block
};

template <bool exact>
FusedKernels fused_kernels();

}  // namespace posattn::cuda::positional

// What the kernels of the fused standard engine are given, and which part of it a block works on.
//
// A block takes one tile, or a group of tiles_per_group. Sums over samples (gradients, the loss)
// have the same bits either way: first over a tile, from zero and with all that threads have to add
// up among themselves; then over the tiles of a group, by the block or by those who read the parts;
// then over the groups.
//
// The forward pass keeps, for every layer and tile, the layer's input rows r and its attention A.
// The backward pass goes from layer to layer with du, the gradient before the layer's ReLU.
#pragma once

#include <cstdint>

#include "posattn/model/cuda/step/folded_engine.h"
#include "posattn/model/cuda/step/tile.cuh"

namespace posattn::cuda::standard {

constexpr int heads = 2;
constexpr int maps = 1 + heads;

struct Step : StepData {
  Positions positions;
  const float* folded;  // [slots, folded_size], natural layout
  float* partials;      // [slots, blocks, folded_size]
  double* losses;       // [slots, blocks], before loss_scale; null: not of these kernels
  int64_t folded_size;
  int64_t decoder, decoder_bias;  // offsets in [folded_size]

  int64_t sample_stride;
  int nodes, real_nodes;  // of the spec
  int encoding_size;
  int tiles;
  int block_tiles, blocks;  // tiles of a block; blocks of a slot
};

// One layer: where its weights are and what passes through it. Layer 0 has no packed weights.
struct Layer {
  int64_t maps, constant, scores, score_bias;  // offsets in [folded_size]
  const float* forward;                        // packed M of slot 0
  const float* backward;                       // M^T
  const float* score_forward;                  // r -> r G
  const float* score_backward;                 // r -> r G^T
  int64_t maps_stride, scores_stride;          // between slots

  float* rows;            // [slots, tiles, tile]: r, the layer's input; none for layer 0
  float* output;          // [slots, tiles, tile]: the next layer's r; none for the last layer
  float* attention;       // [slots, tiles, coefficients]: A
  float* gradient;        // [slots, tiles, tile]: du of this layer
  float* input_gradient;  // [slots, tiles, tile]: du of the layer before
};

// A step without partial sums, which only some of the engines' kernels leave.
inline Step make_step(const FleetShape& shape, const FoldedLayout& layout, const StepData& data,
                      const Positions& positions, const float* folded, int block_tiles) {
  Step step = {};
  static_cast<StepData&>(step) = data;
  step.positions = positions;
  step.folded = folded;
  step.folded_size = layout.size();
  step.decoder = layout.decoder();
  step.decoder_bias = layout.decoder_bias();
  step.sample_stride = shape.sample_stride();
  step.nodes = shape.spec.nodes();
  step.real_nodes = shape.spec.real_nodes;
  step.encoding_size = shape.spec.input_size() - 1;  // of P in the input
  step.tiles = static_cast<int>(shape.sample_stride() / tile_samples);
  step.block_tiles = block_tiles;
  step.blocks = static_cast<int>(ceil_div(step.tiles, block_tiles));
  return step;
}
// Makes a layer with the places of its folded weights alone.
inline Layer layer_places(const FoldedLayout& layout, int index) {
  Layer layer = {};
  layer.maps = layout.maps(index);
  layer.constant = layout.constant(index);
  layer.scores = layout.scores(index);
  layer.score_bias = layout.score_bias(index);
  return layer;
}

// A block's place: slot blockIdx.y, tiles first .. end - 1.
struct Place {
  int slot;
  int64_t part;  // the block's number in the fleet, where it writes its sums
  int first, end;
  SlotStep step;

  __device__ explicit Place(const Step& whole)
      : slot(static_cast<int>(blockIdx.y)),
        part(int64_t{1} * slot * whole.blocks + blockIdx.x),
        first(static_cast<int>(blockIdx.x) * whole.block_tiles),
        step(whole.slots[slot]) {
    const int used = (step.samples + tile_samples - 1) / tile_samples;
    end = first + whole.block_tiles < used ? first + whole.block_tiles : used;
  }
  __device__ bool rests() const { return step.samples == 0; }
};

// Bit j: node j is attended, that is, takes part in attention.
__device__ inline uint32_t attended_nodes(const Step& step, const SlotStep& slot) {
  const uint32_t present = (1u << step.nodes) - 1;
  const uint32_t absent = ((1u << step.real_nodes) - 1) & ~((1u << slot.real_nodes) - 1);
  return present & ~absent;
}

// Starts the copy of `floats` (a multiple of 4) by all threads of the block.
__device__ inline void copy_block(float* shared, const float* global, int floats) {
  for (int k = 4 * static_cast<int>(threadIdx.x); k < floats; k += 4 * tile_threads) {
    copy_async(shared + k, global + k);
  }
}

// What is stored for products to read and for fp32 arithmetic as well: exactly the number that the
// tensor core will see.
template <bool exact>
__device__ inline float stored(float x) {
  return exact ? x : tf32_part(round_to_tf32(x));
}

// Copies a lane's accumulators of one node to and from its chunk of a tile.
template <bool exact>
__device__ inline void store_node(float* tile, int node, int warp, int lane, const float (&c)[4]) {
  store4(tile + tile_offset(node, lane >> 2, 4 * warp + (lane & 3)), stored<exact>(c[0]),
         stored<exact>(c[2]), stored<exact>(c[1]), stored<exact>(c[3]));
}
__device__ inline void load_node(float (&c)[4], const float* tile, int node, int warp, int lane) {
  const float4 chunk = load4(tile + tile_offset(node, lane >> 2, 4 * warp + (lane & 3)));
  c[0] = chunk.x;
  c[1] = chunk.z;
  c[2] = chunk.y;
  c[3] = chunk.w;
}

template <int N>
__device__ inline void fill(float (&c)[N][4], float even, float odd) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    c[i][0] = c[i][2] = even;
    c[i][1] = c[i][3] = odd;
  }
}

}  // namespace posattn::cuda::standard

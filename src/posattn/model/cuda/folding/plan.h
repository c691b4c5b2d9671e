// Where folding finds its operands: offsets into a run's parameters, into its folded weights and
// into what the fold keeps for the unfold. A value that kernels take as argument.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/parameters.h"

namespace posattn::cuda {

// Copies of the folded maps of layers 1 to depth - 1 in the order of packed_element (tile.cuh),
// rounded to tf32 where that is the precision. Null where an engine does not want them.
struct PackedMaps {
  float* forward = nullptr;         // [slots, depth - 1, 1 + H, map_floats]: (n, k) is M(n, k)
  float* backward = nullptr;        // the same shape: (n, k) is M(k, n)
  float* score_forward = nullptr;   // [slots, depth - 1, H, map_floats]: (n, k) is G(k, n)
  float* score_backward = nullptr;  // the same shape: (n, k) is G(n, k); attention from data only
};

// What folding needs to know of any model: its sizes, and offsets into its parameters and its
// folded weights.
struct FoldedTensors {
  explicit FoldedTensors(const ModelSpec& spec) : FoldedTensors(spec, FoldedLayout(spec)) {}
  FoldedTensors(const ModelSpec& spec, const FoldedLayout& folded);

  struct Map {
    int64_t weight = 0, bias = 0;
  };

  // The map into a layer, E and e, is the encoder or the last map of the MLP before.
  __host__ __device__ Map input_map(int layer) const {
    return layer == 0 ? encoder : of_layer(second, layer - 1);
  }
  __host__ __device__ Map of_layer(Map first_layer, int layer) const {
    const int64_t further = layer * layer_stride;
    return {first_layer.weight + further, first_layer.bias + further};
  }
  __host__ __device__ LayerPlaces places(int layer) const {
    if (layer == 0) return first_places;
    const int64_t further = (layer - 1) * places_stride;
    return {later_places.maps + further, later_places.constant + further,
            later_places.scores + further, later_places.score_bias + further,
            later_places.attention + further};
  }
  __host__ __device__ int columns(int layer) const { return layer == 0 ? input : hidden; }

  int depth, heads, head_size, hidden, nodes, real_nodes, encoding_size;
  int input;  // columns of s in layer 0
  bool from_data, direct_attention;

  int64_t parameter_stride;
  int64_t layer_stride;  // from a layer's tensors to the next layer's; offsets below are layer 0's
  Map encoder, query_key, value, output, first, second, decoder;
  int64_t direct_scores = 0;
  int64_t stored_positions = -1;  // the offset of each run's own P

  LayerPlaces first_places, later_places;
  int64_t places_stride, decoder_place, decoder_bias_place, folded_size;
};

// What the kernels of folding.h need in addition.
struct FoldingPlan : FoldedTensors {
  FoldingPlan(const ModelSpec& spec, bool exact, const float* positions, float* kept);

  // What the fold keeps, per slot and layer: W1o Wo, the B_h and, for attention from data and per
  // head, Wq E, Wk E, Wq e + bq and the head's terms of dE (from queries, from keys) and de.
  // Matrices are 64 x 64; columns that a layer does not have stay zero.
  static constexpr int matrix = 64 * 64;
  static int64_t kept_size(const ModelSpec& spec);  // of one layer
  __host__ __device__ float* kept_layer(int slot, int layer) const {
    return kept + (int64_t{1} * slot * depth + layer) * kept_stride;
  }
  __host__ __device__ int64_t kept_values() const { return 0; }
  __host__ __device__ int64_t kept_map(int head) const { return int64_t{1} * (1 + head) * matrix; }
  // `which` is 0 for queries and 1 for keys.
  __host__ __device__ int64_t kept_query_key(int head, int which) const {
    return int64_t{1} * (1 + heads + 2 * head + which) * matrix;
  }
  __host__ __device__ int64_t kept_input(int head, int which) const {
    return int64_t{1} * (1 + 3 * heads + 2 * head + which) * matrix;
  }
  __host__ __device__ int64_t kept_query_bias(int head) const {
    return int64_t{1} * (1 + 5 * heads) * matrix + head * 64;
  }
  __host__ __device__ int64_t kept_input_bias(int head) const {
    return kept_query_bias(heads + head);
  }

  bool exact;  // packed maps are not rounded

  const float* positions;  // one P for all runs, where they do not store their own

  float* kept;
  int64_t kept_stride;
};

}  // namespace posattn::cuda

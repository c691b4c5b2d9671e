// Where the general engine keeps one slot's activations: offsets, in floats, into the slot's part
// of one block of device memory. Rows are (node, sample), node-major: R = nodes x sample_stride of
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

struct GeneralLayout {
  // `attention_budget`: floats of a slot's queries, keys and scores, see below.
  GeneralLayout(const FleetShape& shape, int64_t attention_budget);

  int64_t nodes, samples, rows;

  // Attention from data works on chunks of samples: queries, keys and scores of a whole batch are
  // kept for the gradient if all layers' fit the budget, and computed again otherwise, in chunks
  // that fit it. Attention from positions is always one chunk of one "sample".
  int64_t chunk;
  bool kept;
  int64_t query_key_columns;  // 2 d_k per head
  int64_t attention_stride;   // of a row of scores

  struct Layer {
    int64_t joined;               // [R, 2 d]: x | o
    int64_t value, mixed;         // [R, d]
    std::vector<int64_t> hidden;  // [R, mlp_width] after each ReLU
    int64_t query_key;            // [nodes, chunk, query_key_columns]
    int64_t attention;            // [chunk, heads, nodes, attention_stride]
  };
  std::vector<Layer> layers;
  int64_t decoder_input;  // [R, d]
  int64_t output;         // [R, output_columns], then its gradient

  // Gradients, shared by all layers.
  int64_t djoined[2];  // [R, 2 d]; layer l writes to djoined[l % 2]
  int64_t dhidden[2];  // [R, mlp_width]
  int64_t dmixed, dvalue;
  int64_t dquery_key, dattention;  // of one chunk
  int64_t node_table;              // [nodes, any columns]: what a linear map makes of P
  int64_t node_sums;               // [nodes, any columns]: sums of a gradient over samples

  int64_t floats;  // of one slot
};

}  // namespace posattn::cuda

// Where the general engine keeps one slot's activations: offsets, in floats, into the slot's part
// of one block of device memory. Rows are (node, sample), node-major: R = nodes x sample_stride of
// them. What two parts of a layer share is decided here alone: without a normalisation, what it
// would write is what it would read.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/model/plan.h"

namespace posattn::cuda {

// A View is a matrix of R rows, `stride` floats from row to row.
struct View {
  int64_t offset = 0, stride = 0;
};

// Whether a way back follows. If not, there are no gradients, and what a layer has written is gone
// two layers later.
enum class Passes { forward_and_backward, forward };

struct GeneralLayout {
  // `attention_budget`: floats of a slot's queries, keys and scores, see below.
  GeneralLayout(const FleetShape& shape, const Plan& plan, int64_t attention_budget,
                Passes passes = Passes::forward_and_backward);

  int64_t nodes, samples, rows;

  // Attention from data in one kernel, which writes no scores: queries, keys and values are then
  // one matrix [R, source_columns]. Of dot products in all layers, without anything added.
  bool fused;
  int64_t source_columns;

  // Otherwise attention from data works on chunks of samples: queries, keys and scores of a whole
  // batch are kept for the gradient if all layers' fit the budget, and computed again otherwise, in
  // chunks that fit it. Attention that is the same for all samples is always one chunk of one
  // "sample".
  int64_t chunk;
  bool kept;
  int64_t attention_stride;  // of a row of scores

  // Places of the stream of values in a layer of two streams, or of their gradients: [R,
  // value_width] where nothing else is said.
  struct Values {
    int64_t value, mixed;
    View output, sum;       // o and u of ValueStreamBlock; without gates one place
    int64_t mix_gates;      // [R, 2 value_width] before the sigmoid
    int64_t hidden, gated;  // [R, value_mlp_width] before and after gates
    int64_t hidden_gates;   // [R, value_mlp_width] before the sigmoid
    // v / r and v' / r', behind attention_input and mlp_input in their rows; 1 / |v|, [samples].
    View unit, next_unit;
    int64_t unit_inverse, next_unit_inverse;
  };

  struct Layer {
    View attention_input;         // [R, d]: what attention reads, x or x normalised
    View attended;                // [R, d]: o behind attention_input, in joined; or x + o
    View joined;                  // [x | o]; or x + o, normalised after
    View mlp_input;               // joined, or normalised before
    View output;                  // [R, d]: the next layer's x, or what it is normalised from
    View value;                   // [R, d]
    int64_t mixed;                // [R, d]
    std::vector<int64_t> maps;    // [R, mlp_width] before each activation; hidden after a ReLU
    std::vector<int64_t> hidden;  // [R, mlp_width] after it
    // Of the data.
    int64_t query_key_columns;  // 2 d_k per head
    int64_t query_key;          // [nodes, chunk, query_key_columns], or the fused source
    int64_t key_inverse;        // [nodes, chunk, 2 heads], of unit vectors
    View source;                // [R, d]: attention_input (with v / r), or that divided by its size
    int64_t source_inverse;     // 1 / size of each part
    Values values;              // of two streams
    int64_t totals;             // [R, heads], of fused attention
    // Of positions; its scores are made in place of the attention where there is no other term.
    int64_t position_columns;
    int64_t position_query_key;  // [nodes, position_columns]
    int64_t position_scores;     // [heads, nodes, attention_stride]
    int64_t attention;           // [chunk, heads, nodes, attention_stride]
    int64_t softmax;  // what the gradient goes through: attention, or what it was drawn by
  };
  std::vector<Layer> layers;
  std::vector<View> x;  // [R, d]: the input of each layer, then the last one's output
  std::vector<View> v;  // likewise [R, value_width], of two streams
  View head_input;
  View inputs;             // [R, data_columns], of a wrapped model: divided by their size
  int64_t inputs_inverse;  // [samples]: 1 / |x|
  int64_t output;          // [R, output_columns], then its gradient

  // Gradients. Concurrent work (general/concurrent_streams.h) may read those of a layer while the
  // next one is under way, so each has its place until two layers later: dx is read by two layers.
  int64_t djoined[3];
  int64_t joined_columns;  // of two streams with those of v / r, behind dx
  bool added;
  View dx(int layer) const { return {djoined[layer % 3], joined_columns}; }
  View dvalues[3];
  View dv(int layer) const { return dvalues[layer % 3]; }
  struct LayerGradients {
    View mlp_input;               // added: of what the MLP reads, then of x + o (and v' / r')
    std::vector<int64_t> hidden;  // [R, mlp_width], of each map but the first
    int64_t mixed;                // [R, d]
    View value;                   // [R, d]
    int64_t query_key = 0;        // of one chunk, or of the fused source
    int64_t position_query_key = 0;
    int64_t position_scores = 0;  // [heads, nodes, attention_stride]
    int64_t along = 0;            // [nodes, chunk, heads], of unit queries
    Values values = {};
  };
  LayerGradients of_layer[2];
  const LayerGradients& gradients(int layer) const { return of_layer[layer % 2]; }
  // Concatenated: the gradient of [x | o], whose first half becomes that of x.
  View dmlp_input(int layer) const { return added ? gradients(layer).mlp_input : dx(layer); }
  // Of u and o; what has no place of its own is that of v' and u.
  View dsum(int layer) const { return value_mlp ? gradients(layer).values.sum : dv(layer + 1); }
  View doutput(int layer) const { return gates ? gradients(layer).values.output : dsum(layer); }
  bool value_mlp, gates;  // of values
  int64_t dattention;     // of one chunk
  int64_t dsource;        // [R, d], of a source divided by its size
  int64_t along_sums;     // [nodes, heads]
  int64_t norm_terms;     // [R, d], of a normalisation's gradient
  int64_t node_table;     // [nodes, any columns]: what a linear map makes of P
  int64_t node_sums[2];   // [nodes, any columns]: sums of a gradient over samples; the second for
                          // concurrent work

  int64_t floats;  // of one slot

 private:
  int64_t take(int64_t count);  // room for so many floats
  View take_rows(int64_t columns) { return {take(rows * columns), columns}; }
  Values take_values(const ModelSpec& spec);
  void place_layers(const ModelSpec& spec, const Plan& plan);
  void place_values(const ModelSpec& spec);
  void place_attention(const ModelSpec& spec, const Plan& plan, int64_t attention_budget);
  void place_fused_attention(const AttentionBlock& block);
  void place_gradients(const ModelSpec& spec, int64_t node_columns);

  bool backward_;
};

}  // namespace posattn::cuda

// Where the folded weights of one run lie, and, in the same places, their gradients. The folding
// itself is described in model/engine/folded_stage.h: with s the rows after a ReLU (the input rows
// for layer 0), a layer is u = s M_0^T + sum_h (A_h s) M_h^T + c, and scores from data are
// (s_i G_h + g_h) . s_j (the scale 1 / sqrt(d_k) is inside G and g).
#pragma once

#include <cstdint>

#include "posattn/model/spec.h"

namespace posattn::cuda {

// Where the folded weights of a layer begin; FoldedLayout says what each is.
struct LayerPlaces {
  int64_t maps = 0, constant = 0, scores = 0, score_bias = 0, attention = 0;
};

// P [nodes, encoding_size] of slot 0, and the floats from a slot's P to the next one's.
struct Positions {
  const float* data;
  int64_t slot_stride;
};

struct FoldedLayout {
  // An engine may form x = value a + b_i, node by node, and have layer 0 work on it as the others
  // do on s, without a map before it (`form_input`; the width is that of the hidden layers then).
  explicit FoldedLayout(const ModelSpec& spec, bool form_input = false)
      : depth(spec.depth),
        heads(spec.heads),
        hidden(spec.mlp_width),
        nodes(spec.nodes()),
        input(form_input ? spec.width : spec.input_size()),
        from_data(spec.attention == AttentionSource::data),
        forms_input(form_input) {}

  int depth, heads, hidden, nodes;
  int input;  // columns of s in layer 0
  bool from_data, forms_input;

  // Columns of s in a layer.
  int columns(int layer) const { return layer == 0 ? input : hidden; }

  // M [1 + H][hidden][columns]: M_0, M_1, ...; row-major, M(out, in)
  int64_t maps(int layer) const { return layer == 0 ? 0 : first_end() + (layer - 1) * later(); }
  int64_t maps_size(int layer) const { return int64_t{1} * (1 + heads) * hidden * columns(layer); }
  // c [hidden]
  int64_t constant(int layer) const { return maps(layer) + padded(maps_size(layer)); }
  // Attention from data: G [H][columns][columns], G(i's column, j's column); then g [H][columns].
  int64_t scores(int layer) const { return constant(layer) + padded(hidden); }
  int64_t scores_size(int layer) const {
    return from_data ? int64_t{1} * heads * columns(layer) * columns(layer) : 0;
  }
  int64_t score_bias(int layer) const { return scores(layer) + padded(scores_size(layer)); }
  int64_t score_bias_size(int layer) const { return from_data ? heads * columns(layer) : 0; }
  // Attention from positions: A [H][nodes][nodes] (in the gradient: dA).
  int64_t attention(int layer) const { return score_bias(layer) + padded(score_bias_size(layer)); }
  int64_t attention_size() const { return from_data ? 0 : int64_t{1} * heads * nodes * nodes; }
  LayerPlaces places(int layer) const {
    return {maps(layer), constant(layer), scores(layer), score_bias(layer), attention(layer)};
  }
  // The decoder behind the last W2: y = w . r + b, w [hidden], b [1] (one output column).
  int64_t decoder() const { return first_end() + (depth - 1) * later(); }
  int64_t decoder_bias() const { return decoder() + padded(hidden); }
  // Where x is formed: a, then the b_i, [1 + nodes][input].
  int64_t entry() const { return decoder_bias() + padded(1); }
  int64_t entry_size() const { return forms_input ? int64_t{1} * (1 + nodes) * input : 0; }
  int64_t size() const { return entry() + padded(entry_size()); }

  static int64_t padded(int64_t count) { return (count + 15) / 16 * 16; }

 private:
  // How many numbers a layer has.
  int64_t extent(int layer) const {
    return padded(maps_size(layer)) + padded(hidden) + padded(scores_size(layer)) +
           padded(score_bias_size(layer)) + padded(attention_size());
  }
  int64_t first_end() const { return extent(0); }
  int64_t later() const { return extent(1); }
};

}  // namespace posattn::cuda

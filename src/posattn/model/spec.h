// What a model is: the positional and the standard Transformer of arXiv 2410.01686 and every
// variant between them, as one struct. Nothing here computes; network.h and reference_network.h do.
//
// One layer, with x [nodes, width] (paper, section 4):
//   A_h = softmax(Q_h K_h^T / sqrt(d_k))          Q_h, K_h linear in the attention source
//   x'  = MLP([x | concat_h(A_h V_h) W_O + b_O])  no residual, no normalisation, no mask
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

enum class AttentionSource { positions, data, data_and_positions };
enum class Encoding { one_hot, binary, sinusoidal, random, learned };

struct ModelSpec {
  int real_nodes = 8;     // nodes that carry input and count in the loss (n; 2n for min-sum)
  int scratch_nodes = 1;  // appended with value zero, left out of the loss
  int data_columns = 1;   // input numbers per node
  int output_columns = 1;

  AttentionSource attention = AttentionSource::positions;
  bool positions_in_input = false;  // the encoder sees [data | P] instead of data
  Encoding encoding = Encoding::one_hot;
  int encoding_size = 0;          // columns of P; 0: the encoding's default (see resolve)
  bool rope = false;              // rotate queries and keys by node index (base 10000, over d_k)
  bool direct_attention = false;  // a learned score matrix per head instead of queries and keys
  // Attention by a table of the places that each node reads, instead of scores: the limit of a
  // saturated softmax, without its n^2 numbers. Compiled programs are such models.
  bool routed = false;
  int route_places = 1;  // nodes that a node reads through a head; above 1 with weights

  int width = 64;
  int heads = 2;
  int depth = 4;
  int mlp_width = 64;
  int mlp_depth = 2;  // linear maps in the MLP, a ReLU between each two

  bool operator==(const ModelSpec&) const = default;

  int nodes() const { return real_nodes + scratch_nodes; }
  bool uses_positions() const {
    return positions_in_input ||
           (attention != AttentionSource::data && !direct_attention && !routed);
  }
  bool stores_positions() const {  // P is a tensor of the model file, not a formula
    return uses_positions() && (encoding == Encoding::random || encoding == Encoding::learned);
  }
  int input_size() const { return data_columns + (positions_in_input ? encoding_size : 0); }
  // d_k: full width per head, as in the paper (queries and keys are not split over heads).
  int key_size() const {
    switch (attention) {
      case AttentionSource::positions:
        return encoding_size;
      case AttentionSource::data:
        return width;
      case AttentionSource::data_and_positions:
        return width + encoding_size;
    }
    return 0;
  }
  int head_size() const { return width / heads; }
};

// floor(log2 n) + 1, the paper's depth for length n.
int default_depth(int length);

// Fills in encoding_size (one-hot, random, learned: nodes; binary: ceil(log2 nodes); sinusoidal: 2)
// and throws Error(configuration) when the spec is impossible (heads that do not divide the width,
// sizes below 1 or absurdly large, direct attention from data, ...). A routed model has one scratch
// node, one-hot positions and up to 2^20 real nodes: P is never formed.
ModelSpec resolve(ModelSpec spec);

// Named presets: positional (M5), standard (M0), m0..m5, positional-direct, standard-rope.
struct Preset {
  std::string name;
  std::string description;
};
const std::vector<Preset>& presets();
// Sets the fields that the preset decides and leaves sizes alone. Throws unknown_name(usage).
void apply_preset(std::string_view name, ModelSpec& spec);
// The plain name of the preset with these deciding fields ("positional" for M5, "standard" for M0),
// or "custom".
std::string preset_name(const ModelSpec& spec);

std::string_view to_string(AttentionSource source);
std::string_view to_string(Encoding encoding);
AttentionSource attention_source_from(std::string_view name);
Encoding encoding_from(std::string_view name);

// The spec as one JSON object and back; parsing refuses unknown keys and impossible values.
std::string to_json(const ModelSpec& spec);
ModelSpec spec_from_json(std::string_view json);

// P by formula, row-major [nodes, encoding_size]; for one_hot, binary and sinusoidal encodings.
// binary: bit b of the node index (least significant first) as +1 or -1; sinusoidal: columns
// (2i, 2i+1) = sin, cos of node / 10000^(2i / size).
std::vector<double> formula_positions(const ModelSpec& spec);

}  // namespace posattn

// The description of a model: the positional and the standard Transformer of arXiv 2410.01686,
// every variant between them and models of tokens, as one struct of settings. Nothing here
// computes: plan_of (plan/plan.h) makes it a list of blocks, which the engines carry out.
//
// One layer of the paper, with x [nodes, width] (section 4):
//   A_h = softmax(Q_h K_h^T / sqrt(d_k))          Q_h, K_h linear in the attention source
//   x'  = MLP([x | concat_h(A_h V_h) W_O + b_O])  no residual, no normalisation, no mask
//
// A field is named once more, in spec_fields.h, with the version it came with and, where people may
// set it, its help.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/tasks/loss.h"

namespace posattn {

// What one layer's attention is made of, choice by choice (docs/architecture.md#kinds). Each choice
// is a row of a table in model/attention/.
enum class AttentionSource { positions, data, data_and_positions };  // of queries and keys
// What the data among the source is divided by: nothing, the root mean square of the sample's
// numbers, or that of the node's. Then attention does not change when the input is scaled.
enum class SourceScale { none, sample, node };
// dot: Q K^T / sqrt(d_k). unit: cosines times a learned number of each head. direct: a learned
// score for every pair of nodes. distance: one for every distance i - j. routes: the places that a
// node reads, from a table; not scores but attention itself, as a saturated softmax would make it.
// direction: cosines alone. signs: products of the signs of queries and keys times a learned number
// of each head. tropical: minus the largest difference of two coordinates of q - k. pairs: a
// learned score for each class of a pair of nodes, and a linear map of its numbers. agreements: how
// many spikes of a query and a key are equal, in a spiking network.
enum class Scores {
  dot,
  unit,
  direct,
  distance,
  routes,
  direction,
  signs,
  tropical,
  pairs,
  agreements
};
enum class Rotation { none, rope };  // of queries and keys by node index (base 10000, over d_k)
// Scores without the data, which are added: Q K^T / sqrt(d_k) of positions, the learned ones above
// (those of pairs differ by sample, all others do not), or functions of the distance |i - j|:
// ALiBi, Kerple, FIRE, T5's buckets, the codes of spiking networks (gray, log), or a window.
enum class ScoreBias {
  none,
  positions,
  direct,
  distance,
  alibi,
  kerple,
  fire,
  buckets,
  gray,
  log,
  window,
  pairs
};
// How scores become weights. hard: a node reads one other, drawn by the softmax in training, that
// of the largest score in tests. relu: relu(S) / n. relu_rows: relu(S) by its row's sum. sums: S
// itself. kernel: random features of exp(S). linear: features elu + 1. low_rank:
// Nystrom with landmarks. max_plus: o = max_j (S_j + v_j), column by column.
enum class Weighting { softmax, hard, relu, relu_rows, sums, kernel, linear, low_rank, max_plus };
// Which nodes a node attends to: all, or with `edges` itself, the nodes j where the class of the
// pair (i, j) is not 0, and scratch nodes, which attend to all.
enum class PairMask { none, edges };

struct AttentionChoices {
  AttentionSource attention = AttentionSource::positions;
  SourceScale source_scale = SourceScale::none;
  Scores scores = Scores::dot;
  Rotation rotation = Rotation::none;
  ScoreBias score_bias = ScoreBias::none;
  Weighting weighting = Weighting::softmax;
  int score_window = 0;  // of a convolution over the scores of neighbouring keys; 0: none
  int features = 0;      // of the weighting `kernel`
  int landmarks = 0;     // of the weighting `low_rank`
  PairMask pair_mask = PairMask::none;
  // Of scores by distance: farther nodes count as reach - 1; FIRE divides distances by it. Of a
  // window: nodes nearer than this are attended to. 0: real_nodes. Scratch nodes have scores of
  // their own, and are in every window. Such a model works at any length.
  int reach = 0;

  bool operator==(const AttentionChoices&) const = default;

  // Whether scores come from queries and keys (of whatever source).
  bool has_query_key() const {
    return scores != Scores::direct && scores != Scores::distance && scores != Scores::routes &&
           scores != Scores::pairs;
  }
  bool reads_data() const { return attention != AttentionSource::positions; }
  // The part of the scores that does not read the data: all of them, or the bias.
  ScoreBias position_scores() const;
  bool scores_pairs() const { return position_scores() == ScoreBias::pairs; }
  bool reads_pairs() const { return scores_pairs() || pair_mask != PairMask::none; }
  bool reads_distances() const {
    const ScoreBias kind = position_scores();
    return kind == ScoreBias::distance || kind == ScoreBias::window || kind == ScoreBias::fire;
  }
  bool reads_positions() const {
    return attention == AttentionSource::data_and_positions ||
           position_scores() == ScoreBias::positions;
  }
};

// automatic: learned where positions are added to the input, else one-hot (see resolve).
enum class Encoding { one_hot, binary, sinusoidal, random, learned, automatic };
// none: no map has a bias but those of queries and keys, and no normalisation a shift. A positional
// model is then homogeneous: f(c x) = c f(x) for c > 0.
enum class Biases { all, none };
// How attention's output o meets x: MLP([x | o]), as in the paper, or y = x + o and then y +
// MLP(y).
enum class Join { concatenate, add };
enum class Normalisation { none, before, after };  // LayerNorm before or after each part of a layer
enum class Activation { relu, gelu, gelu_tanh };
// scale: f(x) = r g(x / r), r the root mean square of the sample's input numbers, g the network.
enum class Wrap { none, scale };
// What gates made of symbols multiply in a layer of two streams: nothing, the values and what
// attention adds to them, or the hidden features of the values' MLP too.
enum class ValueGates { none, mix, mix_and_hidden };

// What people choose of a model: flags, TOML, help and the documentation follow from the list in
// spec_fields.h.
struct ModelSettings {
  int width = 64;
  int heads = 2;
  int depth = 4;
  int mlp_width = 64;
  int mlp_depth = 2;      // linear maps in the MLP, an activation between each two
  int scratch_nodes = 1;  // appended with value zero, left out of the loss
  Encoding encoding = Encoding::one_hot;
  int encoding_size = 0;  // columns of P; 0: the encoding's default (see resolve)

  // Since 0.2.0
  bool causal = false;       // node i attends to nodes 0..i only
  bool split_heads = false;  // queries and keys of size source / heads, as in GPT
  Join join = Join::concatenate;
  Normalisation normalisation = Normalisation::none;
  Activation activation = Activation::relu;
  bool positions_added = false;  // P is added to the encoded input (encoding_size = width)
  bool tied_output = false;      // the decoder is the table of tokens
  bool fixed_tokens = false;     // that table is not trained: random codes

  // Since 0.3.0
  // Kinds of attention, separated by commas, where layers differ: layer l has the one at l modulo
  // their number. Empty: all layers have the architecture's. See kind_of (presets.cc).
  std::string kinds;
  // Times that the list of layers is applied, with the same weights: a number, or a rule by the
  // real nodes of the sample, "n" or "log2" (rounded up).
  std::string loops = "1";
  Wrap wrap = Wrap::none;
  // Of a spiking network, whose linear maps charge neurons that fire or do not at every step
  // (kernels/generic/neurons.h). The outputs are read from the mean over the steps. 0: no spikes.
  int time_steps = 0;
  // Positions of nodes are places in 0 .. position_range - 1, see node_positions. 0: node i is at
  // i.
  int position_range = 0;
  // Two streams (docs/streams.md): tokens and positions make symbols, `width` wide, which do not
  // scale. The input numbers flow through values, which do: f(s, c x) = c f(s, x).
  int value_width = 0;      // features of the values of a node; 0: one stream
  int value_mlp_width = 0;  // hidden features of the values' MLP; 0: none, f is linear in x
  ValueGates value_gates = ValueGates::none;
  // Queries and keys, or the symbols' MLP, also read the values, divided by the root mean square of
  // the sample's.
  bool scores_read_values = false;
  bool symbols_read_values = false;

  bool operator==(const ModelSettings&) const = default;
};

// The settings, and what the task and the architecture decide. The choices are those of every layer
// unless `kinds` names others.
struct ModelSpec : ModelSettings, AttentionChoices {
  int real_nodes = 8;    // nodes that carry input and count in the loss (n; 2n for min-sum)
  int data_columns = 1;  // input numbers per node
  int output_columns = 1;

  bool positions_in_input = false;  // the encoder sees [data | P] instead of data
  int route_places = 1;             // nodes that a node reads by a route; above 1 with weights

  // Since 0.2.0
  Biases biases = Biases::all;
  // Tokens that the input may hold, 0: numbers only. With data_columns > 0 a node holds either: its
  // token, or, where that is negative, its numbers. Scratch nodes hold the number 0, or nothing.
  int vocabulary = 0;
  // Real nodes whose outputs count: the first ones, below 0 the last ones; 0: all. The squared
  // error is their mean.
  int read_nodes = 0;
  Loss loss = Loss::squared_error;

  // Since 0.3.0
  // Columns of the pairs of nodes that attention reads, as in TaskShape; 0 where it reads none,
  // whatever the task has.
  int pair_columns = 0;
  int pair_classes = 0;
  // Whether a node holds a token and numbers at once: its input is table[token] + W x + b, where a
  // negative token adds nothing.
  bool tokens_and_values = false;

  // Of training alone, in no file: how many labels a node has after each layer. A linear map of the
  // layer's state learns them (LayerBlock::hint). Empty: no hints.
  std::vector<int> hint_columns;

  bool operator==(const ModelSpec&) const = default;

  int nodes() const { return real_nodes + scratch_nodes; }
  // How many nodes' outputs count in a sample of `of_real_nodes`.
  int nodes_read(int of_real_nodes) const {
    const int read = read_nodes < 0 ? -read_nodes : read_nodes;
    return read > 0 && read < of_real_nodes ? read : of_real_nodes;
  }
  int first_read(int of_real_nodes) const {
    return read_nodes < 0 ? of_real_nodes - nodes_read(of_real_nodes) : 0;
  }
  // The model whose every layer is as layer l of this one.
  ModelSpec of_layer(int layer) const;
  // Whether a layer's choices satisfy a condition.
  template <class Condition>
  bool any_layer(const Condition& condition) const {
    if (kinds.empty()) return condition(static_cast<const AttentionChoices&>(*this));
    for (int layer = 0; layer < depth; ++layer) {
      if (condition(static_cast<const AttentionChoices&>(of_layer(layer)))) return true;
    }
    return false;
  }
  // Whether attention depends on the sample somewhere: on its data or its pairs.
  bool attends_by_data() const {
    return any_layer(
        [](const AttentionChoices& kind) { return kind.reads_data() || kind.reads_pairs(); });
  }
  bool has_pairs() const { return pair_columns > 0 || pair_classes > 0; }
  bool routed() const { return scores == Scores::routes; }
  bool two_streams() const { return value_width > 0; }
  // Columns of the values among the source of queries and keys.
  int values_in_source() const { return scores_read_values ? value_width : 0; }
  int loops_at(int of_real_nodes) const;
  bool spikes() const { return time_steps > 0; }
  // How many layers a sample goes through.
  int applied_layers(int of_real_nodes) const { return depth * loops_at(of_real_nodes); }
  bool uses_positions() const {
    return positions_in_input || positions_added ||
           any_layer([](const AttentionChoices& kind) { return kind.reads_positions(); });
  }
  bool stores_positions() const {  // P is a tensor of the model file, not a formula
    return uses_positions() && (encoding == Encoding::random || encoding == Encoding::learned);
  }
  // Input columns of the encoder, of two streams that of symbols.
  int input_size() const {
    return (two_streams() ? 0 : data_columns) + (positions_in_input ? encoding_size : 0);
  }
  // Columns of what queries and keys are made of.
  int source_size() const {
    switch (attention) {
      case AttentionSource::positions:
        return encoding_size;
      case AttentionSource::data:
        return width + values_in_source();
      case AttentionSource::data_and_positions:
        return width + values_in_source() + encoding_size;
    }
    return 0;
  }
  // d_k: full width per head, as in the paper, unless heads are split.
  int key_size() const { return split_heads ? source_size() / heads : source_size(); }
  int bias_key_size() const { return split_heads ? encoding_size / heads : encoding_size; }
  // Input columns of the MLP.
  int joined_size() const { return join == Join::concatenate ? 2 * width : width; }
  int head_size() const { return width / heads; }
};

// floor(log2 n) + 1, the paper's depth for length n.
int default_depth(int length);

// Fills in the encoding, encoding_size (one-hot, random, learned: nodes; binary: ceil(log2 nodes);
// sinusoidal: 2; the width where positions are added) and reach, leaves out pairs that no layer
// reads, and throws Error(configuration)
// when the spec is impossible (heads that do not divide the width, sizes below 1 or absurdly large,
// direct attention from data, ...). A routed model has a scratch node (or more, which may compute
// too: the last is the one without anything), one-hot positions and up to 2^20 real nodes: P is
// never formed.
ModelSpec resolve(ModelSpec spec);

// The same model for another number of real nodes, where its weights mean something there: relative
// attention, attention from data, formula encodings of a fixed size. Nothing otherwise.
std::optional<ModelSpec> at_length(const ModelSpec& spec, int real_nodes);

// The choices of a kind: a name (attention_kinds), then choices that differ, as
// "data scores=unit score-bias=positions". Throws Error(configuration).
AttentionChoices kind_of(std::string_view text);
// A text that kind_of reads as these choices: a name where there is one.
std::string kind_text(const AttentionChoices& kind);
struct NamedKind {
  std::string_view name, description;
  AttentionChoices choices;
};
const std::vector<NamedKind>& attention_kinds();

// Named presets: positional (M5), standard (M0), m0..m5, positional-direct, standard-rope,
// relative, homogeneous, standard-no-bias, scale-free, scale-free-joint, two-streams, and those of
// other systems (docs/neighbours.md).
struct Preset {
  std::string name;
  std::string description;
  // Whether shapes alone may mean this preset; others must be named, as RoPE and absent biases
  // leave no trace in a file.
  bool shown_by_shapes = true;
};
const std::vector<Preset>& presets();
// Sets the fields that the preset decides and leaves sizes alone; of two streams those of values,
// where they are 0, are width and mlp_width. Throws unknown_name(usage), and Error(configuration)
// for values in a preset of one stream.
void apply_preset(std::string_view name, ModelSpec& spec);
// The plain name of the preset with these deciding fields ("positional" for M5, "standard" for M0),
// or "custom".
std::string preset_name(const ModelSpec& spec);

std::string_view to_string(AttentionSource source);
std::string_view to_string(SourceScale scale);
std::string_view to_string(Scores scores);
std::string_view to_string(Rotation rotation);
std::string_view to_string(ScoreBias bias);
std::string_view to_string(Weighting weighting);
std::string_view to_string(PairMask mask);
std::string_view to_string(Encoding encoding);  // of automatic: ""
std::string_view to_string(Biases biases);
std::string_view to_string(Join join);
std::string_view to_string(Normalisation normalisation);
std::string_view to_string(Activation activation);
std::string_view to_string(Wrap wrap);
std::string_view to_string(ValueGates gates);
std::string_view to_string(Loss loss);
template <class Enumeration>
std::vector<std::string> names_of();
// Throws unknown_name(usage) that lists what exists.
template <class Enumeration>
Enumeration from_name(std::string_view name);

// The spec as one JSON object and back; parsing refuses unknown keys and impossible values. A field
// newer than the file has the default that it came with.
std::string to_json(const ModelSpec& spec);
ModelSpec spec_from_json(std::string_view json);

// P by formula, row-major [nodes, encoding_size]; for one_hot, binary and sinusoidal encodings.
// binary: bit b of the node index (least significant first) as +1 or -1; sinusoidal: columns
// (2i, 2i+1) = sin, cos of node / 10000^(2i / size).
std::vector<double> formula_positions(const ModelSpec& spec);
// The rows of nodes at these positions.
std::vector<double> formula_positions(const ModelSpec& spec, std::span<const int> positions);

}  // namespace posattn

// A plan says what a spec means: its tensors and a short list of blocks. Parameters, the double
// reference, the block executor on the CPU and the general CUDA engine read this list; the folded
// and fused engines match the specs that they can do.
//
//   input -> [attention, MLP] x depth -> head -> loss
//
// What attention is made of stands in tables of rows (attention/rows.h).
#pragma once

#include <optional>
#include <vector>

#include "posattn/model/spec/spec.h"
#include "posattn/model/spec/tensors.h"

namespace posattn {

using TensorId = int;  // place in Plan::tensors
inline constexpr TensorId no_tensor = -1;

// Neurons of a spiking network, one by column, that x charges by gain x.
struct NeuronBlock {
  TensorId gain = no_tensor;  // absent: no neurons
  double threshold = 1;
};

// y = x W^T + b, or the spikes of neurons that it charges.
struct LinearBlock {
  TensorId weight = no_tensor, bias = no_tensor;
  int in = 0, out = 0;
  NeuronBlock neurons = {};
};

// LayerNorm over the columns of a node: y = gain (x - mean) / sqrt(variance + 1e-5) + shift.
struct NormalisationBlock {
  TensorId gain = no_tensor, shift = no_tensor;
};

// x = a linear map of [values | P], or the row of a token, by node, or their sum; then x + P.
struct InputBlock {
  std::optional<LinearBlock> values;  // absent where nodes hold tokens only
  bool positions_joined = false;
  std::optional<LinearBlock> stream;  // v = W x of two streams; the first map has P alone then
  TensorId tokens = no_tensor;
  bool tokens_added = false;  // to the first map; else in its place
  bool positions_added = false;
  NeuronBlock neurons = {};
};

// The part of the scores that does not read the data: the same for all samples, or of a sample's
// pairs. Its row (attention/rows.h) says what the tensors are, and which of the two it is.
struct PositionTerm {
  ScoreBias kind = ScoreBias::positions;
  std::vector<TensorId> tensors;
  std::optional<LinearBlock> query_key;  // of P
  int key_size = 0;
  bool rope = false;
  int reach = 0;  // of scores by distance
};

// The part that is made of queries and keys from x, or from [x | P]; of two streams from [x | v /
// r] or [x | v / r | P], r the root mean square of the sample's values.
struct DataTerm {
  LinearBlock query_key;
  Scores scores = Scores::dot;
  SourceScale scale = SourceScale::none;
  int values_joined = 0;  // columns of v
  bool positions_joined = false, rope = false;
  int key_size = 0;
  double factor = 1;                // of the products of queries and keys
  TensorId head_scale = no_tensor;  // of scores that have one
};

// A convolution over the scores of neighbouring keys (attention/score_convolution.h).
struct ScoreConvolutionTerm {
  TensorId first = no_tensor, first_bias = no_tensor, last = no_tensor, last_bias = no_tensor;
  int channels = 0, window = 0;
};

// Attention itself: the places that a node reads.
struct RouteTerm {
  TensorId routes = no_tensor, weights = no_tensor;
};

// o = (concat_h A_h V_h) W_O^T + b_O, A_h = weights of data + position scores, over nodes 0..i
// where causal.
struct AttentionBlock {
  std::optional<DataTerm> data;
  std::optional<PositionTerm> positions;
  std::optional<RouteTerm> routes;  // in place of both
  std::optional<ScoreConvolutionTerm> convolution;
  Weighting weighting = Weighting::softmax;
  TensorId weighting_tensor = no_tensor;
  int landmarks = 0, features = 0;
  int heads = 1, head_size = 0;
  bool causal = false;
  PairMask pair_mask = PairMask::none;
  LinearBlock value, output;  // without tensors where a layer of two streams mixes values alone
  NeuronBlock neurons = {};   // that A_h V_h charges
  bool mixes() const { return value.weight != no_tensor; }
};

// Linear maps with an activation between each two.
struct MlpBlock {
  std::vector<LinearBlock> maps;
  Activation activation = Activation::relu;
};

// The values v of a layer of two streams. Nothing here has a bias but the gates, which read the
// symbols z' = norm(s), so v scales with the input:
//   o = concat_h A_h (v W_V^T)_h W_O^T          A_h as for the symbols
//   u = v + o                                   or 2 sigmoid(G_1 z' + b_1) v + 2 sigmoid(G_2 z' +
//   b_2) o v' = u + relu(u W_0^T) W_1^T                or with 2 sigmoid(G_h z' + b_h) relu(u
//   W_0^T)
struct ValueStreamBlock {
  LinearBlock value, output;
  int head_size = 0;
  std::optional<LinearBlock> mix_gate, hidden_gate;  // G_1 and G_2 are one map
  std::vector<LinearBlock> mlp;                      // two maps, or none: v' = u
};

// concatenate: x' = MLP([x | attention(x)]); add: y = x + attention(x), x' = y + MLP(y).
// normalised before: attention and MLP read normalised values (a concatenated layer normalises its
// input once); after: what is added, or the layer's output, is normalised.
struct LayerBlock {
  AttentionBlock attention;
  MlpBlock mlp;
  Join join = Join::concatenate;
  Normalisation when = Normalisation::none;
  std::optional<NormalisationBlock> attention_norm, mlp_norm;
  std::optional<LinearBlock> hint;  // of the state behind the layer, in training
  // Of two streams, where x are the symbols. What nobody reads after the last layer is absent:
  // there the MLP has no maps, and with classes as outputs there may be no values.
  std::optional<ValueStreamBlock> values;
  bool symbols_read_values = false;  // the MLP reads [z' | v' / r']
};

struct HeadBlock {
  std::optional<NormalisationBlock> norm;
  LinearBlock map;            // its weight may be the table of tokens, then without a bias
  bool reads_values = false;  // of two streams, then without a bias
};

struct Plan {
  TensorList tensors;
  TensorId positions = no_tensor;  // P, where it is stored
  InputBlock input;
  std::vector<LayerBlock> layers;
  HeadBlock head;
  Loss loss = Loss::squared_error;
};

// `spec` must be resolved.
Plan plan_of(const ModelSpec& spec);

}  // namespace posattn

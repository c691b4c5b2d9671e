// A plan says what a spec means: its tensors and a short list of blocks. Parameters, the double
// reference, the block executor on the CPU and the general CUDA engine read this list; the folded
// and fused engines match the specs that they can do.
//
//   input -> [attention, MLP] x depth -> head -> loss
//
// A new kind of score is a struct here, a line in plan.cc, and one file in this folder (scores.h).
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "posattn/model/plan/tensors.h"
#include "posattn/model/spec.h"

namespace posattn {

using TensorId = int;  // place in Plan::tensors
inline constexpr TensorId no_tensor = -1;

// y = x W^T + b
struct LinearBlock {
  TensorId weight = no_tensor, bias = no_tensor;
  int in = 0, out = 0;
};

// LayerNorm over the columns of a node: y = gain (x - mean) / sqrt(variance + 1e-5) + shift.
struct NormalisationBlock {
  TensorId gain = no_tensor, shift = no_tensor;
};

// x = a linear map of [values | P], or the row of a token, by node; then x + P.
struct InputBlock {
  std::optional<LinearBlock> values;  // absent where nodes hold tokens only
  bool positions_joined = false;
  TensorId tokens = no_tensor;
  bool positions_added = false;
};

// How attention is scored. The first four do not depend on the data: one matrix per head for all
// samples.
struct PositionScores {  // queries and keys from P
  LinearBlock query_key;
  bool rope = false;
};
struct DirectScores {
  TensorId scores = no_tensor;
};
struct RelativeScores {  // by distance
  TensorId distances = no_tensor, scratch = no_tensor;
  int reach = 0;
};
struct RouteScores {  // no scores but attention itself: the places that a node reads
  TensorId routes = no_tensor, weights = no_tensor;
};
struct DataScores {  // queries and keys from x or [x | P]
  LinearBlock query_key;
  bool rope = false, positions_joined = false;
};
using Scores = std::variant<PositionScores, DirectScores, RelativeScores, RouteScores, DataScores>;

// o = (concat_h A_h V_h) W_O^T + b_O, A_h = softmax(scores_h), over nodes 0..i where causal.
struct AttentionBlock {
  Scores scores;
  int heads = 1, key_size = 0, head_size = 0;
  bool causal = false;
  LinearBlock value, output;

  bool from_data() const { return std::holds_alternative<DataScores>(scores); }
};

// Linear maps with an activation between each two.
struct MlpBlock {
  std::vector<LinearBlock> maps;
  Activation activation = Activation::relu;
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
};

struct HeadBlock {
  std::optional<NormalisationBlock> norm;
  LinearBlock map;  // its weight may be the table of tokens, then without a bias
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

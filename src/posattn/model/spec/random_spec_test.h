// Random models and batches for property tests of the network.
#pragma once

#include <algorithm>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/network.h"

namespace posattn::testing {

// Of weights that grow with the scores of the data a layer has degree 3 in its input, and L layers
// 3^L. Rows of relu_rows may be divided by little, which amplifies rounding. Two layers are enough.
inline void limit_growth(ModelSpec& spec) {
  const bool grows = spec.any_layer([](const AttentionChoices& kind) {
    return kind.reads_data() &&
           (kind.weighting == Weighting::relu || kind.weighting == Weighting::relu_rows ||
            kind.weighting == Weighting::sums);
  });
  if (!grows) return;
  spec.depth = std::min(spec.depth, 2);
  spec.loops = "1";
}

// Pairs for a model that reads some; resolve leaves them out of any other.
inline void add_random_pairs(RandomStream& random, ModelSpec& spec) {
  spec.pair_columns = static_cast<int>(random.below(3));
  spec.pair_classes = 2 + static_cast<int>(random.below(3));
}

inline ModelSpec random_spec(RandomStream& random) {
  ModelSpec spec;
  spec.real_nodes = 1 + static_cast<int>(random.below(12));
  spec.scratch_nodes = static_cast<int>(random.below(3));
  spec.data_columns = 1 + static_cast<int>(random.below(3));
  spec.output_columns = 1 + static_cast<int>(random.below(3));
  const auto& all = presets();
  apply_preset(all[random.below(static_cast<uint32_t>(all.size()))].name, spec);
  spec.landmarks = std::min(spec.landmarks, spec.nodes());
  spec.encoding = static_cast<Encoding>(random.below(5));
  if (spec.nodes() < 2 && spec.encoding == Encoding::binary) spec.encoding = Encoding::one_hot;
  spec.heads = 1 + static_cast<int>(random.below(3));
  spec.width = spec.heads * (1 + static_cast<int>(random.below(12)));
  // One or two columns may cancel by chance: rounding is then large beside what is left.
  if (spec.width < 3) spec.width += 2 * spec.heads;
  spec.depth = 1 + static_cast<int>(random.below(3));
  spec.mlp_width = 1 + static_cast<int>(random.below(40));
  spec.mlp_depth = 2 + static_cast<int>(random.below(2));
  limit_growth(spec);
  add_random_pairs(random, spec);
  return resolve(spec);
}

// Kinds of attention that no preset has, or that differ by layer.
inline std::string random_kinds(RandomStream& random, int nodes) {
  const char* const composed[] = {
      "data scores=unit",
      "data scores=unit source-scale=node",
      "data source-scale=node",
      "data score-bias=direct rotation=rope",
      "data score-bias=distance",
      "data-and-positions score-bias=positions",
      "data-and-positions source-scale=sample scores=unit",
      "positions weighting=hard",
      "cosine weighting=hard",
      "data scores=direction",
      "data scores=signs score-bias=gray",
      "data score-bias=log",
      "data scores=tropical",
      "data scores=tropical weighting=max_plus",
      "relative weighting=max_plus",
      "cosine weighting=max_plus",
      "positions weighting=relu",
      "cosine weighting=relu",
      "data weighting=sums",
      "data weighting=relu_rows",
      "data score-bias=alibi",
      "rope score-bias=buckets",
      "data score-bias=kerple scores=unit score-window=1",
      "data score-bias=fire score-window=5",
      "data score-window=3",
      "cosine weighting=hard score-window=3",
      "data weighting=kernel features=5",
      "rope score-bias=fire weighting=kernel features=3",
      "data source-scale=node score-bias=alibi weighting=kernel features=4",
      "data score-bias=pairs",
      "cosine score-bias=pairs pair-mask=edges",
      "relative pair-mask=edges",
      "pairs weighting=hard",
      "pairs weighting=sums",
      "linear scores=unit",
      "low-rank landmarks=2",
      "low-rank scores=unit landmarks=3",
      "data score-bias=window reach=2",
      "data weighting=hard score-bias=window reach=3"};
  std::string kinds;
  const uint32_t count = 1 + random.below(2);
  for (uint32_t k = 0; k < count; ++k) {
    const auto& named = attention_kinds();
    const uint32_t which = random.below(static_cast<uint32_t>(named.size() + std::size(composed)));
    const std::string_view text =
        which < named.size() ? named[which].name : composed[which - named.size()];
    kinds += (k == 0 ? "" : ",") + std::string(text);
    if (kind_of(text).landmarks > nodes) kinds += " landmarks=" + std::to_string(nodes);
  }
  return kinds;
}

// Any combination of blocks that a spec allows.
inline ModelSpec random_open_spec(RandomStream& random) {
  const auto flip = [&] { return random.below(2) == 0; };
  ModelSpec spec = random_spec(random);
  spec.causal = flip();
  spec.split_heads = spec.has_query_key() && flip();
  spec.join = flip() ? Join::add : Join::concatenate;
  spec.normalisation = static_cast<Normalisation>(random.below(3));
  // LayerNorm of a few columns is nearly a sign: its gradient cancels, in float to nothing.
  if (spec.width < 6) spec.normalisation = Normalisation::none;
  spec.activation = static_cast<Activation>(random.below(3));
  spec.biases = flip() ? Biases::all : Biases::none;
  if (flip()) {
    spec.vocabulary = 2 + static_cast<int>(random.below(6));
    if (flip() && !spec.positions_in_input) spec.data_columns = 0;
    if (flip()) spec.tied_output = true;
    if (spec.tied_output) spec.output_columns = spec.vocabulary;
  }
  if (flip()) spec.loss = Loss::cross_entropy;
  if (!spec.positions_in_input && flip()) {
    spec.positions_added = true;
    spec.encoding = flip() ? Encoding::learned : Encoding::random;
    spec.encoding_size = spec.width;
  }
  spec.split_heads = spec.split_heads && spec.source_size() % spec.heads == 0 &&
                     (!spec.reads_positions() || spec.encoding_size % spec.heads == 0);
  spec.fixed_tokens = spec.vocabulary > 0 && flip();
  if (flip()) {
    spec.kinds = random_kinds(random, spec.nodes());
    spec.depth = std::max(spec.depth, 2);
    spec.split_heads = false;
    spec.reach = 0;
  }
  if (flip() && flip()) spec.loops = flip() ? "2" : "log2";
  limit_growth(spec);
  if (flip()) spec.read_nodes = 1 + static_cast<int>(random.below(spec.real_nodes));
  if (spec.vocabulary == 0 && spec.loss == Loss::squared_error && spec.mlp_width % 3 == 0) {
    spec.wrap = Wrap::scale;  // without a draw, so that the other choices stay
  }
  add_random_pairs(random, spec);
  if (flip()) spec.read_nodes = -spec.read_nodes;
  spec.causal = spec.causal && !spec.any_layer([](const AttentionChoices& kind) {
    return kind.weighting == Weighting::low_rank;
  });
  return resolve(spec);
}

// Whether attention is drawn in training: the gradient goes straight through a step function.
inline bool is_drawn(const ModelSpec& spec) {
  return spec.any_layer(
      [](const AttentionChoices& kind) { return kind.weighting == Weighting::hard; });
}

// Whether scores are made of signs: in float rounding turns that of a number near 0, and the
// gradient is no derivative.
inline bool has_signs(const ModelSpec& spec) {
  return spec.any_layer([](const AttentionChoices& kind) { return kind.scores == Scores::signs; });
}

// Weights of ordinary size everywhere, biases included (initial values have zero ones); what is
// absent stays zero.
inline Parameters<float> random_parameters(const ModelSpec& spec, uint64_t seed) {
  Parameters<float> parameters(spec);
  initialise(parameters, seed);
  RandomStream random(seed, Purpose::initial_values, 1, 0);
  for (const TensorInfo& t : parameters.layout().tensors()) {
    const bool absent_bias = !t.trained && t.initial == Initial::zero;
    for (float& value : parameters.slice(t)) {
      const float change = random.uniform(-0.2f, 0.2f);
      if (!absent_bias) value += change;
      // Below its bound such a number has no derivative.
      if (t.initial == Initial::positive_uniform) value = std::max(value, 0.05f);
    }
  }
  return parameters;
}

struct RandomBatch {
  std::vector<float> inputs, targets, pairs;
  std::vector<double> inputs64, targets64, pairs64;
  std::vector<int32_t> tokens, labels, pair_classes;
  std::vector<uint8_t> mask;
  int64_t samples;
  int real_nodes;
  StepContext context = {.training = true};

  RandomBatch(const ModelSpec& spec, int64_t sample_count, int active, RandomStream& random)
      : samples(sample_count), real_nodes(active) {
    inputs.resize(samples * real_nodes * spec.data_columns);
    targets.resize(samples * real_nodes * spec.output_columns);
    for (float& x : inputs) x = random.uniform(-2, 2);
    for (float& x : targets) x = random.uniform(-2, 2);
    inputs64.assign(inputs.begin(), inputs.end());
    targets64.assign(targets.begin(), targets.end());
    mask.resize(real_nodes * spec.output_columns);
    for (auto& m : mask) m = random.below(4) != 0;
    // Where nodes hold either, some hold numbers; some labels do not count.
    const auto classes = [&](int count, bool negative) {
      std::vector<int32_t> values(samples * real_nodes);
      for (auto& v : values) {
        v = static_cast<int32_t>(random.below(static_cast<uint32_t>(count + (negative ? 1 : 0))));
        v -= negative ? 1 : 0;
      }
      return values;
    };
    if (spec.vocabulary > 0) tokens = classes(spec.vocabulary, spec.data_columns > 0);
    if (spec.loss == Loss::cross_entropy) labels = classes(spec.output_columns, true);
    const int64_t all_pairs = samples * real_nodes * real_nodes;
    pairs.resize(all_pairs * spec.pair_columns);
    for (float& x : pairs) x = random.uniform(-2, 2);
    pairs64.assign(pairs.begin(), pairs.end());
    pair_classes.resize(spec.pair_classes > 0 ? all_pairs : 0);
    for (auto& v : pair_classes) {
      v = static_cast<int32_t>(random.below(static_cast<uint32_t>(spec.pair_classes)));
    }
  }
  // In training, of the first step, from seed 0: as a step of a fleet is in tests.
  Batch batch() const {
    return {inputs, targets, samples, real_nodes, tokens, labels, context, pairs, pair_classes};
  }
  ReferenceBatch reference() const {
    return {inputs64, targets64, samples, real_nodes,  tokens,
            labels,   context,   pairs64, pair_classes};
  }
};

}  // namespace posattn::testing

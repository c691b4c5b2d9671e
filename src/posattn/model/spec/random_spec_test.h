// Random models and batches for property tests of the network.
#pragma once

#include <vector>

#include "posattn/base/random.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/network.h"

namespace posattn::testing {

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
  // Where all is one number, its gradient may cancel by chance.
  spec.width = std::max(2, spec.heads * (1 + static_cast<int>(random.below(12))));
  spec.depth = 1 + static_cast<int>(random.below(3));
  spec.mlp_width = 1 + static_cast<int>(random.below(40));
  spec.mlp_depth = 2 + static_cast<int>(random.below(2));
  return resolve(spec);
}

// Kinds of attention that no preset has, or that differ by layer.
inline std::string random_kinds(RandomStream& random, int nodes) {
  const char* const composed[] = {"data scores=unit",
                                  "data scores=unit source-scale=node",
                                  "data source-scale=node",
                                  "data score-bias=direct rotation=rope",
                                  "data score-bias=distance",
                                  "data-and-positions score-bias=positions",
                                  "data-and-positions source-scale=sample scores=unit",
                                  "positions weighting=hard",
                                  "cosine weighting=hard",
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
  if (flip()) spec.read_nodes = 1 + static_cast<int>(random.below(spec.real_nodes));
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
    }
  }
  return parameters;
}

struct RandomBatch {
  std::vector<float> inputs, targets;
  std::vector<double> inputs64, targets64;
  std::vector<int32_t> tokens, labels;
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
  }
  // In training, of the first step, from seed 0: as a step of a fleet is in tests.
  Batch batch() const { return {inputs, targets, samples, real_nodes, tokens, labels, context}; }
  ReferenceBatch reference() const {
    return {inputs64, targets64, samples, real_nodes, tokens, labels, context};
  }
};

}  // namespace posattn::testing

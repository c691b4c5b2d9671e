// Random models and batches for property tests of the network.
#pragma once

#include <vector>

#include "posattn/base/random.h"
#include "posattn/model/network.h"
#include "posattn/model/reference_network.h"

namespace posattn::testing {

inline ModelSpec random_spec(RandomStream& random) {
  ModelSpec spec;
  spec.real_nodes = 1 + static_cast<int>(random.below(12));
  spec.scratch_nodes = static_cast<int>(random.below(3));
  spec.data_columns = 1 + static_cast<int>(random.below(3));
  spec.output_columns = 1 + static_cast<int>(random.below(3));
  const auto& all = presets();
  apply_preset(all[random.below(static_cast<uint32_t>(all.size()))].name, spec);
  spec.encoding = static_cast<Encoding>(random.below(5));
  if (spec.nodes() < 2 && spec.encoding == Encoding::binary) spec.encoding = Encoding::one_hot;
  spec.heads = 1 + static_cast<int>(random.below(3));
  spec.width = spec.heads * (1 + static_cast<int>(random.below(12)));
  spec.depth = 1 + static_cast<int>(random.below(3));
  spec.mlp_width = 1 + static_cast<int>(random.below(40));
  spec.mlp_depth = 2 + static_cast<int>(random.below(2));
  return resolve(spec);
}

// Weights of ordinary size everywhere, biases included (initial values have zero ones).
inline Parameters<float> random_parameters(const ModelSpec& spec, uint64_t seed) {
  Parameters<float> parameters(spec);
  initialise(parameters, seed);
  RandomStream random(seed, Purpose::initial_values, 1, 0);
  for (const TensorInfo& t : parameters.layout().tensors()) {
    for (float& value : parameters.slice(t)) value += random.uniform(-0.2f, 0.2f);
  }
  return parameters;
}

struct RandomBatch {
  std::vector<float> inputs, targets;
  std::vector<double> inputs64, targets64;
  std::vector<uint8_t> mask;
  int64_t samples;
  int real_nodes;

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
  }
  Batch batch() const { return {inputs.data(), targets.data(), samples, real_nodes}; }
  ReferenceBatch reference() const {
    return {inputs64.data(), targets64.data(), samples, real_nodes};
  }
};

}  // namespace posattn::testing

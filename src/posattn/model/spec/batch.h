// Samples of one length, as a model reads them.
#pragma once

#include <cstdint>
#include <span>

namespace posattn {

// What a training step draws from: numbers depend on these and on the place in the network alone,
// so not on threads, tiles or fleets. Validation and tests are never in training, and draw nothing.
struct StepContext {
  uint64_t seed = 0;
  uint32_t step = 0;          // from 0
  uint32_t first_sample = 0;  // of the step's samples, the first of this batch
  bool training = false;
};

// `real_nodes` may be below the spec's (variable length): the model then uses the first real_nodes
// rows of P and the scratch rows. What a model does not read may be empty.
template <class T>
struct BatchOf {
  std::span<const T> inputs = {};   // [samples, real_nodes, data_columns]
  std::span<const T> targets = {};  // [samples, real_nodes, output_columns], for squared errors
  int64_t samples = 0;
  int real_nodes = 0;
  std::span<const int32_t> tokens = {};  // [samples, real_nodes]; negative: the node holds numbers
  std::span<const int32_t> labels = {};  // [samples, real_nodes]: classes; negative: does not count
  StepContext context = {};
  std::span<const T> pairs = {};               // [samples, real_nodes, real_nodes, pair_columns]
  std::span<const int32_t> pair_classes = {};  // [samples, real_nodes, real_nodes]
  // What the loss multiplies a sample's outputs by, [samples]; empty: 1 (spec/scale_wrap.h).
  std::span<const T> units = {};
  // Labels of the states of real nodes, for each sample layer after layer, [real_nodes,
  // hint_columns]; and by how much their loss counts in the model's gradient.
  std::span<const T> hints = {};
  double hint_weight = 1;

  T unit(int64_t sample) const { return units.empty() ? T(1) : units[sample]; }
};

using Batch = BatchOf<float>;
using ReferenceBatch = BatchOf<double>;

}  // namespace posattn

// The wrap `scale`: the network g reads a sample divided by its size, and its outputs are
// multiplied by it,
//   f(x) = r g(x / r),  r = root mean square of the sample's input numbers,  f(0) = 0
// A node that holds a token in place of numbers has none. So that f(c x) = c f(x) for every g and c
// > 0. There is no epsilon, which would break this. The loss is that of f, (r g - y)^2, and its
// derivative by g is 2 r (r g - y).
#pragma once

#include <cmath>
#include <vector>

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

// A batch as the network reads it: itself where the model is not wrapped. Refers to the batch.
template <class T>
class ScaledBatch {
 public:
  ScaledBatch(const ModelSpec& spec, const BatchOf<T>& batch) : batch_(batch) {
    if (spec.wrap == Wrap::none) return;
    const bool either = spec.vocabulary > 0 && !spec.tokens_and_values;
    const auto columns = static_cast<size_t>(spec.data_columns);
    const size_t count = static_cast<size_t>(batch.real_nodes) * columns;
    inputs_.assign(batch.inputs.begin(), batch.inputs.end());
    for (int64_t sample = 0; sample < batch.samples; ++sample) {
      T* x = inputs_.data() + sample * count;
      double square = 0;  // of a float it does not overflow
      size_t numbers = 0;
      for (size_t i = 0; i < count; ++i) {
        if (either && batch.tokens[sample * batch.real_nodes + i / columns] >= 0) continue;
        square += static_cast<double>(x[i]) * x[i];
        ++numbers;
      }
      const double mean = numbers > 0 ? square / static_cast<double>(numbers) : 0;
      const auto unit = static_cast<T>(std::sqrt(mean));
      units_.push_back(unit);
      for (size_t i = 0; i < count; ++i) x[i] = unit > 0 ? x[i] / unit : T(0);
    }
    batch_.inputs = inputs_;
    batch_.units = units_;
  }
  ScaledBatch(const ScaledBatch&) = delete;
  ScaledBatch& operator=(const ScaledBatch&) = delete;

  const BatchOf<T>& batch() const { return batch_; }

  // outputs [samples, ...] of the network become those of the model.
  void multiply_back(std::span<T> outputs) const {
    if (units_.empty()) return;
    const size_t each = outputs.size() / units_.size();
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] *= units_[i / each];
  }

 private:
  BatchOf<T> batch_;
  std::vector<T> inputs_, units_;
};

}  // namespace posattn

// The wrap `scale`: the network g reads a sample divided by its size, and its outputs are
// multiplied by it,
//   f(x) = r g(x / r),  r = root mean square of the sample's input numbers,  f(0) = 0
// so that f(c x) = c f(x) for every g and c > 0. There is no epsilon, which would break this. The
// loss is that of f, (r g - y)^2, and its derivative by g is 2 r (r g - y).
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
    const auto count = static_cast<size_t>(batch.real_nodes) * spec.data_columns;
    inputs_.assign(batch.inputs.begin(), batch.inputs.end());
    for (int64_t sample = 0; sample < batch.samples; ++sample) {
      T* x = inputs_.data() + sample * count;
      double square = 0;  // of a float it does not overflow
      for (size_t i = 0; i < count; ++i) square += static_cast<double>(x[i]) * x[i];
      const auto unit = static_cast<T>(std::sqrt(square / static_cast<double>(count)));
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

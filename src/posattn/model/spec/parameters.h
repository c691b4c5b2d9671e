// A model's weights: one contiguous buffer, one named tensor after another (each starting at a
// multiple of 16 elements), with the names of the authors' state dict. Weights are [out, in].
//
// A routed model has no qk_proj but `attn.routes` [heads, nodes], the node that each node reads;
// or, for several places, `attn.routes` and `attn.route_weights` [heads, nodes, route_places],
// where the last scratch node is read with what the weights of a row leave of 1.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/model/spec/spec.h"
#include "posattn/model/spec/tensors.h"
#include "posattn/tensor/buffer.h"

namespace posattn {

class ParameterLayout {
 public:
  explicit ParameterLayout(const ModelSpec& spec);  // spec must be resolved

  const std::vector<TensorInfo>& tensors() const { return list_.all(); }
  const TensorInfo& at(std::string_view name) const;  // throws std::out_of_range
  int64_t buffer_size() const { return list_.buffer_size(); }
  int64_t parameter_count() const;  // trained numbers, padding left out

 private:
  TensorList list_;
};

template <class T>
class Parameters {
 public:
  explicit Parameters(std::shared_ptr<const ParameterLayout> layout)
      : layout_(std::move(layout)), values_(layout_->buffer_size()) {}
  explicit Parameters(const ModelSpec& spec)
      : Parameters(std::make_shared<const ParameterLayout>(spec)) {}

  const ParameterLayout& layout() const { return *layout_; }
  std::shared_ptr<const ParameterLayout> shared_layout() const { return layout_; }
  std::span<T> values() { return values_; }
  std::span<const T> values() const { return values_; }
  std::span<T> operator[](std::string_view name) { return slice(layout_->at(name)); }
  std::span<const T> operator[](std::string_view name) const { return slice(layout_->at(name)); }
  std::span<T> slice(const TensorInfo& t) {
    return std::span<T>(values_).subspan(t.offset, t.size);
  }
  std::span<const T> slice(const TensorInfo& t) const {
    return std::span<const T>(values_).subspan(t.offset, t.size);
  }

 private:
  std::shared_ptr<const ParameterLayout> layout_;
  Buffer<T> values_;  // zero-initialised; padding stays zero
};

// The authors' initial values: Xavier-uniform on qk_proj (the stacked matrix counts as one), v_proj
// and o_proj with zero biases; every other linear map U(-1/sqrt(fan_in), 1/sqrt(fan_in)). Relative
// scores start at zero, tokens and stored positions as normal rows of expected squared norm 1.
//
// gpt: those of GPT-2: N(0, 0.02) for every matrix and table that is trained, those whose output is
// added to x divided by sqrt(2 depth), zero biases.
enum class InitialValues { paper, gpt };
InitialValues initial_values_from(std::string_view name);  // throws unknown_name(configuration)
void initialise(Parameters<float>& parameters, uint64_t seed,
                InitialValues values = InitialValues::paper);

// The same weights in another precision.
Parameters<double> to_double(const Parameters<float>& parameters);

// P [nodes, encoding_size] of this model: by formula, or the stored tensor.
template <class T>
std::vector<T> positions_of(const ModelSpec& spec, const Parameters<T>& parameters);

}  // namespace posattn

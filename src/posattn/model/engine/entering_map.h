// The linear map x = s E^T + e into a layer, as what folds it sees it: where x itself is a stage's
// input (input_stage.h), E is the identity and e zero, and nobody reads their gradients.
#pragma once

#include "posattn/model/engine/layer_maps.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

enum class LayerInput { hidden, x };

class EnteringMap {
 public:
  EnteringMap(const ModelSpec& spec, const ParameterLayout& layout, int layer, LayerInput input)
      : map_(entering_map(spec, layout, layer)), is_identity_(input == LayerInput::x) {
    if (!is_identity_) return;
    map_ = {0, map_.out * map_.out, map_.out, map_.out};
    identity_.assign(map_.bias + map_.out, 0.0f);
    for (int64_t i = 0; i < map_.out; ++i) identity_[i * map_.out + i] = 1;
    unread_.resize(identity_.size());
  }

  int64_t in() const { return map_.in; }
  // Given all weights, or all gradients.
  const float* weight(const float* all) const { return of(all) + map_.weight; }
  const float* bias(const float* all) const { return of(all) + map_.bias; }
  float* weight_gradient(float* all) { return of(all) + map_.weight; }
  float* bias_gradient(float* all) { return of(all) + map_.bias; }

 private:
  const float* of(const float* weights) const { return is_identity_ ? identity_.data() : weights; }
  float* of(float* gradients) { return is_identity_ ? unread_.data() : gradients; }

  LinearMap map_;
  bool is_identity_;
  Buffer<float> identity_, unread_;  // E and e, dE and de
};

}  // namespace posattn::engine

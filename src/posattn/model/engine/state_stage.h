// A folded layer (folded_stage.h) whose heads mix s itself:
//   u = s M_0^T + sum_h (A_h s) M_h^T + c,      M_0 = W1x E,   B_h = W1o Wo_h Wv_h,   M_h = B_h E,
//   c = W1x e + sum_h B_h e + W1o (Wo bv + bo) + b1
#pragma once

#include "posattn/model/engine/folded_stage.h"

namespace posattn::engine {

class StateStage : public FoldedStage {
 public:
  StateStage(const ModelSpec& spec, const ParameterLayout& layout, int layer)
      : FoldedStage(spec, layout, layer, LayerInput::hidden, Mixes::state) {}

 private:
  void fold() override;
  void unfold(const float* gradient, Parameters<float>& out) override;

  Buffer<float> p_, b_;  // W1o Wo [mlp_width, d] and the B_h [H, mlp_width, d]
};

}  // namespace posattn::engine

// The two kinds of folded layers (folded_stage.h). The first is for many nodes: a head mixes its
// own width / heads columns of values, not all columns of s.
//   u = s M_0^T + concat_h(A_h r_h) P^T + c,     r = s V^T,   V = Wv E,   M_0 = W1x E,
//   P = W1o Wo,   c = W1x e + P (Wv e + bv) + W1o bo + b1
#pragma once

#include "posattn/model/tiles/folded_stage.h"

namespace posattn::engine {

class ValueStage : public FoldedStage {
 public:
  // With fewer nodes StateStage does, as it always has: a model's bits are to stay.
  static constexpr int fewest_nodes = 96;
  static bool supports(const ModelSpec& spec) {
    return spec.nodes() >= fewest_nodes && FoldedStage::supports(spec);
  }
  ValueStage(const ModelSpec& spec, const ParameterLayout& layout, int layer, LayerInput input)
      : FoldedStage(spec, layout, layer, input, Mixes::values) {}

  int64_t gradient_size() const override;
  void begin_gradient(int64_t samples) override;

 private:
  void fold() override;
  void unfold(const float* gradient, Parameters<float>& out) override;
  void make_values(int64_t rows, const float* s, float* r) const override;
  void values_gradient(int64_t rows, const float* s, const float* dr, float* ds, bool wants_ds,
                       float* gradient) const override;
  void add_attention_gradient(int64_t first, int samples, Headed<const float> dmixed,
                              Headed<const float> values, float* sums,
                              float* scratch) const override;
  float* attention_sums(float* gradient) override;

  Buffer<float> v_;             // V [d, padded k]
  Buffer<float> v_transposed_;  // [k, stride_v]
  Buffer<float> value_bias_;    // Wv e + bv
  int64_t kept_samples_ = 0;    // of this gradient; 0: dA is summed tile by tile
  // d(A_h r_h) and r_h of every sample, transposed: [heads, samples, head_size, attention's
  // stride]. Written by tiles, each its own samples.
  mutable Buffer<float> kept_dmixed_, kept_values_;
  Buffer<float> da_;  // [heads, nodes, stride]
};

// The second, whose heads mix s itself:
//   u = s M_0^T + sum_h (A_h s) M_h^T + c,      M_0 = W1x E,   B_h = W1o Wo_h Wv_h,   M_h = B_h E,
//   c = W1x e + sum_h B_h e + W1o (Wo bv + bo) + b1
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

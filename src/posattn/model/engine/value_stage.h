// An attention layer with everything linear folded but the values, for many nodes: FoldedStage
// mixes all columns of s for every head, this one a head's own width / heads columns.
// With the names of folded_stage.h and rows of A_h summing to one,
//   u = s M_0^T + concat_h(A_h r_h) P^T + c,     r = s V^T,   V = Wv E,   M_0 = W1x E,   P = W1o
//   Wo, c = W1x e + P (Wv e + bv) + W1o bo + b1
#pragma once

#include <memory>

#include "posattn/model/engine/data_attention.h"
#include "posattn/model/engine/entering_map.h"
#include "posattn/model/engine/folded_scores.h"
#include "posattn/model/engine/positional_attention.h"
#include "posattn/model/engine/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class ValueStage : public Stage {
 public:
  // With fewer nodes FoldedStage does, as it always has: a model's bits are to stay.
  static constexpr int fewest_nodes = 96;
  static bool supports(const ModelSpec& spec);
  ValueStage(const ModelSpec& spec, const ParameterLayout& layout, int layer, LayerInput input);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int samples) const override;
  int64_t gradient_size() const override;
  void begin_gradient(int64_t samples) override;
  int64_t input_stride() const override { return stride_c_; }
  void forward(int samples, float* tape, float* scratch, float* output,
               int64_t output_stride) const override;
  float* backward(int64_t first, int samples, const float* tape, const float* output,
                  int64_t output_stride, float* doutput, int64_t doutput_stride, bool wants_dinput,
                  float* scratch, float* gradient) const override;
  void finish(float* gradient, Parameters<float>& out, float* dpositions) override;
  bool attention(const float* tape, float* scratch, float* out) const override;
  StageWork nominal_work() const override;
  StageWork actual_work() const override;

 private:
  void fold();
  void unfold(const float* gradient, Parameters<float>& out);
  void keep_factors(int64_t first, int samples, const float* dt, const float* r) const;
  void multiply_factors();
  int64_t queries_stride() const { return scores_ ? scores_->stride() : 0; }
  // The tape: [s | t], r and, of attention from data, queries and what is kept of attention.
  int64_t tape_values(int samples) const { return samples * int64_t{most_nodes_} * stride_c_; }
  int64_t tape_queries(int samples) const {
    return tape_values(samples) + samples * int64_t{most_nodes_} * stride_d_;
  }
  int64_t tape_kept(int samples) const {
    return tape_queries(samples) + samples * int64_t{most_nodes_} * queries_stride();
  }
  // Accumulators: d[M_0 | P] transposed, dV transposed, dc, dA or those of the scores.
  int64_t gradient_v() const { return (k_ + spec_.width) * stride_m_; }
  int64_t gradient_c() const { return gradient_v() + k_ * stride_d_; }
  int64_t gradient_attention() const { return gradient_c() + stride_m_; }

  const ModelSpec spec_;
  EnteringMap enter_;                 // E
  LinearMap value_, output_, first_;  // Wv, Wo, W1
  int64_t k_;                         // columns of s
  int most_nodes_, nodes_;
  int64_t stride_c_, stride_d_, stride_m_;
  std::unique_ptr<PositionalAttention> positional_;
  std::unique_ptr<FoldedScores> scores_;  // and
  std::unique_ptr<DataAttention> data_;   // of attention from data
  const float* weights_ = nullptr;

  Buffer<float> m_;             // [mlp_width, stride_c]: [M_0 | P]
  Buffer<float> m_transposed_;  // [k + d, stride_m]
  Buffer<float> v_;             // [d, padded k]
  Buffer<float> v_transposed_;  // [k, stride_d]
  Buffer<float> value_bias_;    // Wv e + bv
  Buffer<float> c_;
  int64_t kept_samples_ = 0;  // of this gradient; 0: dA is summed tile by tile
  // d(A_h r_h) and r_h of every sample, transposed: [heads, samples, head_size, attention's
  // stride]. Written by tiles, each its own samples.
  mutable Buffer<float> kept_dt_, kept_r_;
  Buffer<float> da_;  // [heads, nodes, stride]
};

}  // namespace posattn::engine

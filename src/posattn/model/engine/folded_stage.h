// An attention layer with everything linear folded together. With x = s E^T + e and rows of A_h
// summing to one, the next pre-activation of
//   u = [x | concat_h(A_h (x Wv_h^T + bv_h)) Wo^T + bo] W1^T + b1,   W1 = [W1x | W1o]
// is
//   u = s M_0^T + sum_h (A_h s) M_h^T + c,      M_0 = W1x E,   B_h = W1o Wo_h Wv_h,   M_h = B_h E,
//   c = W1x e + sum_h B_h e + W1o (Wo bv + bo) + b1:
// x, v and o are never formed. Scores from data fold the same way (folded_scores.h).
// The gradients of the original factors follow from those of M and c by products of weights only,
// once a step, so the optimiser still steps the original weights.
#pragma once

#include <memory>

#include "posattn/model/engine/data_attention.h"
#include "posattn/model/engine/folded_scores.h"
#include "posattn/model/engine/positional_attention.h"
#include "posattn/model/engine/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class FoldedStage : public Stage {
 public:
  FoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer);

  // Attention from [data | positions] and RoPE do not fold.
  static bool supports(const ModelSpec& spec);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int samples) const override;
  int64_t gradient_size() const override;
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
  bool from_data() const { return !positional_; }
  int64_t queries_stride() const { return scores_ ? scores_->stride() : 0; }
  void allocate();
  void fold_maps();
  void unfold_maps(const float* gradient, Parameters<float>& out);
  // Offsets into the tape and into the gradient accumulators.
  int64_t tape_queries(int samples) const { return samples * int64_t{most_nodes_} * stride_c_; }
  int64_t tape_kept(int samples) const {
    return tape_queries(samples) + samples * int64_t{most_nodes_} * queries_stride();
  }
  int64_t gradient_c() const { return inputs_ * stride_m_; }
  int64_t gradient_attention() const { return gradient_c() + stride_m_; }

  const ModelSpec spec_;
  LinearMap enter_, value_, output_, first_;  // E, Wv, Wo, W1
  int64_t k_;                                 // columns of s
  int64_t inputs_;                            // (1 + H) k: columns of [s | A_1 s | ...]
  int heads_, most_nodes_, nodes_;
  int64_t stride_c_, stride_m_;
  std::unique_ptr<PositionalAttention> positional_;
  std::unique_ptr<FoldedScores> scores_;  // and
  std::unique_ptr<DataAttention> data_;   // of attention from data
  const float* weights_ = nullptr;

  Buffer<float> m_transposed_;  // [(1 + H) k, stride_m]: the M^T below each other
  Buffer<float> m_;             // [mlp_width, stride_c]
  Buffer<float> c_;             // [stride_m]
  Buffer<float> p_, b_;         // W1o Wo [mlp_width, d] and the B_h [H, mlp_width, d]
};

}  // namespace posattn::engine

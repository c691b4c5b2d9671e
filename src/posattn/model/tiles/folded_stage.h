// An attention layer with its linear maps folded together. With x = s E^T + e and rows of A_h
// summing to one, the next pre-activation of
//   u = [x | concat_h(A_h (x Wv_h^T + bv_h)) Wo^T + bo] W1^T + b1,   W1 = [W1x | W1o]
// is
//   u = [s | A_1 r_1 | A_2 r_2 | ...] M^T + c
// where every head mixes s itself (StateStage) or r_h, its values (ValueStage). x and o are
// never formed. Scores from data fold the same way (folded_scores.h).
// The gradients of the original factors follow from those of M and c by products of weights only,
// once a step, so the optimiser still steps the original weights.
#pragma once

#include <memory>

#include "posattn/model/tiles/data_attention.h"
#include "posattn/model/tiles/layer_maps.h"
#include "posattn/model/tiles/positional_attention.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/model/tiles/tile_scores.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class FoldedStage : public Stage {
 public:
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

 protected:
  enum class Mixes { state, values };
  FoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer, LayerInput input,
              Mixes mixes);

  // Products of weights, once a step: M and c from the factors, and the factors' gradients from
  // those of M and c.
  virtual void fold() = 0;
  virtual void unfold(const float* gradient, Parameters<float>& out) = 0;
  // Stages that mix values make r from s; then, from dr, the values' own sums and ds +=.
  virtual void make_values(int64_t /*rows*/, const float* /*s*/, float* /*r*/) const {}
  virtual void values_gradient(int64_t /*rows*/, const float* /*s*/, const float* /*dr*/,
                               float* /*ds*/, bool /*wants_ds*/, float* /*gradient*/) const {}
  // Attention from positions: dA of a tile added to `sums`, and the sums of all tiles.
  virtual void add_attention_gradient(int64_t first, int samples, Headed<const float> dmixed,
                                      Headed<const float> values, float* sums,
                                      float* scratch) const;
  virtual float* attention_sums(float* gradient) { return gradient + gradient_attention(); }

  bool mixes_values() const { return stride_v_ > 0; }
  // Accumulators: dM transposed, those of the values, dc, dA or those of the scores.
  int64_t gradient_v() const { return inputs_ * stride_m_; }
  int64_t gradient_c() const { return gradient_v() + k_ * stride_v_; }
  int64_t gradient_attention() const { return gradient_c() + stride_m_; }

  const ModelSpec spec_;
  LayerInputMap input_map_;           // E
  LinearMap value_, output_, first_;  // Wv, Wo, W1
  int64_t k_;                         // columns of s
  int64_t mixed_;                     // columns that each head mixes
  int64_t inputs_;                    // columns of [s | A_1 r_1 | ...]
  int most_nodes_, nodes_;
  int64_t stride_c_, stride_m_, stride_v_;  // of rows of the inputs, of M^T, of r (0 without)
  std::unique_ptr<PositionalAttention> positional_;
  const float* weights_ = nullptr;
  Buffer<float> m_;             // M [mlp_width, stride_c]
  Buffer<float> m_transposed_;  // [inputs, stride_m]
  Buffer<float> c_;             // [stride_m]

 private:
  // The tape: inputs, r and, of attention from data, its queries and what is kept of attention.
  int64_t tape_values(int samples) const { return samples * int64_t{most_nodes_} * stride_c_; }
  int64_t tape_queries(int samples) const {
    return tape_values(samples) + samples * int64_t{most_nodes_} * stride_v_;
  }
  int64_t tape_kept(int samples) const {
    return tape_queries(samples) +
           (scores_ ? padded(scores_->tape_size(samples * int64_t{most_nodes_})) : 0);
  }
  template <class T>
  Headed<T> operands(T* s, T* r) const {  // of mixing
    return mixes_values() ? Headed<T>{r, stride_v_, mixed_} : Headed<T>{s, stride_c_, 0};
  }

  std::unique_ptr<TileScores> scores_;   // and
  std::unique_ptr<DataAttention> data_;  // of attention from data
};

}  // namespace posattn::engine

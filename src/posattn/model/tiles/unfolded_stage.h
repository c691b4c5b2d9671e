// An attention layer as the architecture is written, for every ModelSpec:
//   x = s E^T + e;  v = x Wv^T + bv;  q, k from x, from [x | P] or from P, rotated with RoPE;
//   m = concat_h A_h v_h;  o = m Wo^T + bo;  output = relu([x | o] W1^T + b1)
#pragma once

#include <memory>

#include "posattn/model/tiles/data_attention.h"
#include "posattn/model/tiles/layer_maps.h"
#include "posattn/model/tiles/positional_attention.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class UnfoldedStage : public Stage {
 public:
  UnfoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int samples) const override;
  int64_t gradient_size() const override;
  int64_t input_stride() const override { return stride_s_; }
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
  // Offsets into the tape: s, [x | o], v, m, then queries and keys and the kept attention.
  struct Tape {
    int64_t x, v, m, qk, kept, end;
  };
  Tape tape(int samples) const;
  // Offsets into the gradient accumulators, one map after another.
  struct Gradient {
    int64_t input_map, value, output, first, query_key, table, attention, end;
  };
  Gradient gradient() const;
  void query_key_forward(int64_t rows, const float* x, float* qk) const;

  const ModelSpec spec_;
  LinearMap query_key_layout_;
  DenseMap input_map_, value_, output_, first_;
  DenseMap query_key_;  // the part of qk_proj that reads x
  int most_nodes_, nodes_;
  int64_t stride_s_, stride_x_, stride_d_, stride_qk_ = 0;
  float scale_ = 1;
  ActiveNodes active_;
  std::unique_ptr<PositionalAttention> positional_;
  std::unique_ptr<DataAttention> data_;
  Buffer<float> positions_;  // [nodes, encoding_size] of attention from [x | P], active rows
  Buffer<float> table_;      // [nodes, stride_qk]: bias of qk_proj plus its part that reads P
  const float* weights_ = nullptr;
};

}  // namespace posattn::engine

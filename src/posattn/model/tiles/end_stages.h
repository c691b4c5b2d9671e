// The stages without attention: a middle map of a deep MLP, the decoder, and the encoder of an
// input with positions.
#pragma once

#include "posattn/model/tiles/layer_maps.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

// output = relu(s W^T + b): a linear map between the first and the last of an MLP.
class MiddleStage : public Stage {
 public:
  MiddleStage(const ModelSpec& spec, const ParameterLayout& layout, int layer, int index);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int samples) const override;
  int64_t gradient_size() const override { return map_.gradient_size(); }
  int64_t input_stride() const override { return padded(map_.in()); }
  void forward(int samples, float* tape, float* scratch, float* output,
               int64_t output_stride) const override;
  float* backward(int64_t first, int samples, const float* tape, const float* output,
                  int64_t output_stride, float* doutput, int64_t doutput_stride, bool wants_dinput,
                  float* scratch, float* gradient) const override;
  void finish(float* gradient, Parameters<float>& out, float* dpositions) override;
  StageWork nominal_work() const override { return {map_.work() * most_nodes_, 0}; }
  StageWork actual_work() const override { return nominal_work(); }

 private:
  DenseMap map_;
  int most_nodes_, nodes_;
};

// output = (s W2^T + b2) Wdec^T + bdec, folded to s D^T + f with D = Wdec W2, f = Wdec b2 + bdec.
class DecoderStage : public Stage {
 public:
  DecoderStage(const ModelSpec& spec, const ParameterLayout& layout);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int samples) const override;
  int64_t gradient_size() const override { return out_ * padded(hidden_) + padded(out_); }
  int64_t input_stride() const override { return padded(hidden_); }
  void forward(int samples, float* tape, float* scratch, float* output,
               int64_t output_stride) const override;
  float* backward(int64_t first, int samples, const float* tape, const float* output,
                  int64_t output_stride, float* doutput, int64_t doutput_stride, bool wants_dinput,
                  float* scratch, float* gradient) const override;
  void finish(float* gradient, Parameters<float>& out, float* dpositions) override;
  // Counted with the layers' last maps; the decoder itself is not (see attention_layer_work).
  StageWork nominal_work() const override { return {}; }
  StageWork actual_work() const override;

 private:
  LinearMap last_, decoder_;  // W2 of the last layer, Wdec
  int64_t hidden_, width_, out_;
  int most_nodes_, nodes_;
  const float* weights_ = nullptr;
  Buffer<float> map_;         // D [out, padded hidden]
  Buffer<float> transposed_;  // [hidden, padded out]
  Buffer<float> bias_;        // f [padded out]
};

// The encoder of an input with positions, for many nodes: x = data D^T + T, where row i of T is
// P_i E_P^T + e, [D | E_P] and e the encoder's. T is made once a step, so that a node costs its few
// columns of data, not those of P (as many as nodes where P is one-hot). The attention stage behind
// it starts from x itself.
class InputStage : public Stage {
 public:
  InputStage(const ModelSpec& spec, const ParameterLayout& layout);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               AttentionForm form) override;
  int64_t tape_size(int samples) const override;
  int64_t scratch_size(int /*samples*/) const override { return 0; }
  int64_t gradient_size() const override;
  int64_t input_stride() const override { return padded(data_.in()); }
  void forward(int samples, float* tape, float* scratch, float* output,
               int64_t output_stride) const override;
  // It has the network's input, whose gradient nobody wants.
  float* backward(int64_t first, int samples, const float* tape, const float* output,
                  int64_t output_stride, float* doutput, int64_t doutput_stride, bool wants_dinput,
                  float* scratch, float* gradient) const override;
  void finish(float* gradient, Parameters<float>& out, float* dpositions) override;
  StageWork nominal_work() const override { return {}; }  // as the decoder's
  StageWork actual_work() const override;

 private:
  const ModelSpec spec_;
  LinearMap map_;
  DenseMap data_;  // the encoder's part that reads data
  int64_t stride_;
  int nodes_;
  ActiveNodes active_;
  const float* weights_ = nullptr;
  Buffer<float> positions_;  // [nodes, encoding_size], active rows; not of one-hot ones
  Buffer<float> table_;      // T [nodes, stride]
};

}  // namespace posattn::engine

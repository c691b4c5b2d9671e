// The encoder of an input with positions, for many nodes: x = data D^T + T, where row i of T is
// P_i E_P^T + e, [D | E_P] and e the encoder's. T is made once a step, so that a node costs its few
// columns of data, not those of P (as many as nodes where P is one-hot). The attention stage behind
// it starts from x itself.
#pragma once

#include "posattn/model/tiles/dense_map.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

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

// Linear maps and mixing that the attention stages share.
#pragma once

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/tiles/data_attention.h"
#include "posattn/model/tiles/positional_attention.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

// The linear map into a layer: the encoder, or the last map of the previous layer's MLP.
LinearMap layer_input_map(const ModelSpec& spec, const ParameterLayout& layout, int layer);

// The same map x = s E^T + e as stages that fold it see it. Where x itself is a stage's input
// (InputStage), E is the identity and e zero, and nobody reads their gradients.
enum class LayerInput { hidden, x };
class LayerInputMap {
 public:
  LayerInputMap(const ModelSpec& spec, const ParameterLayout& layout, int layer, LayerInput input);

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

// Mixing `width` columns of each sample with a shared attention matrix per head.
//   y_s,h = A_h x_s,h
void mix_samples(const PositionalAttention& attention, int samples, int64_t width,
                 Headed<const float> x, Headed<float> y);
//   dx_s,h += A_h^T dy_s,h
void mix_samples_transposed(const PositionalAttention& attention, int samples, int64_t width,
                            Headed<const float> dy, Headed<float> dx);
//   dA_h += sum_s dy_s,h x_s,h^T;  scratch [width, padded nodes]
void attention_gradient(const PositionalAttention& attention, int samples, int64_t width,
                        Headed<const float> dy, Headed<const float> x, float* da, float* scratch);
// A [m, n] += x y^T.
void add_outer(int64_t m, int64_t n, const float* x, const float* y, float* a, int64_t lda);

// [heads, nodes, nodes] without padding.
void copy_attention(const PositionalAttention& attention, float* out);

// Multiply-adds of one layer as the architecture is written (the encoder and decoder are not
// counted, as in the paper's own accounting of a layer).
StageWork attention_layer_work(const ModelSpec& spec, const PositionalAttention* positional);

// A linear map y = x W^T + b as the stages use it: the transposed weight once a step for forward,
// the weight itself for dx, and a transposed accumulator for dW.
class DenseMap {
 public:
  DenseMap() = default;
  // Only the first `columns` of the weight's inputs (0: all of them).
  explicit DenseMap(const LinearMap& map, int64_t columns = 0);

  void prepare(const float* weights);
  int64_t in() const { return in_; }
  int64_t out() const { return map_.out; }

  // y = x W^T + b, with ReLU where the store says so; Store::add leaves the bias to the caller.
  void forward(int64_t rows, const float* x, int64_t x_stride, float* y, int64_t y_stride,
               Store store) const;
  // dx = or += dy W
  void input_gradient(int64_t rows, const float* dy, int64_t dy_stride, float* dx,
                      int64_t dx_stride, Store store) const;
  // Accumulators: [in, padded out] for the weight, then [padded out] for the bias.
  int64_t gradient_size() const { return (in_ + 1) * padded(map_.out); }
  float* bias_gradient(float* gradient) const { return gradient + in_ * padded(map_.out); }
  void weight_gradient(int64_t rows, const float* x, int64_t x_stride, const float* dy,
                       int64_t dy_stride, float* gradient) const;
  void sum_bias(int64_t rows, const float* dy, int64_t dy_stride, float* gradient) const;
  // Into the parameter buffer of gradients: weight columns [0, in) and, unless told not to, bias.
  void finish(const float* gradient, float* values, bool with_bias = true) const;

  double work() const { return static_cast<double>(in_) * static_cast<double>(map_.out); }

 private:
  LinearMap map_;
  int64_t in_ = 0;
  const float* weights_ = nullptr;
  Buffer<float> transposed_;  // [in, padded out]
};

}  // namespace posattn::engine

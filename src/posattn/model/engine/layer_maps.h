// Linear maps and mixing that the attention stages share.
#pragma once

#include "posattn/model/engine/data_attention.h"
#include "posattn/model/engine/positional_attention.h"
#include "posattn/model/engine/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

// The linear map into a layer: the encoder, or the last map of the previous layer's MLP.
LinearMap layer_input_map(const ModelSpec& spec, const ParameterLayout& layout, int layer);

// The same map x = s E^T + e as stages that fold it see it. Where x itself is a stage's input
// (input_stage.h), E is the identity and e zero, and nobody reads their gradients.
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

}  // namespace posattn::engine

// What the attention stages share.
#pragma once

#include "posattn/model/engine/positional_attention.h"
#include "posattn/model/engine/stage.h"

namespace posattn::engine {

// The linear map into a layer: the encoder, or the last map of the previous layer's MLP.
LinearMap entering_map(const ModelSpec& spec, const ParameterLayout& layout, int layer);

// Mixing with a shared attention matrix per head. Head h reads columns [h * offset, + width) of its
// operand and writes likewise; an offset of zero means that all heads share the columns.
//   y_s,h = A_h x_s,h
void mix_samples(const PositionalAttention& attention, int samples, int64_t width, const float* x,
                 int64_t x_stride, int64_t x_offset, float* y, int64_t y_stride, int64_t y_offset);
//   dx_s,h += A_h^T dy_s,h
void mix_samples_transposed(const PositionalAttention& attention, int samples, int64_t width,
                            const float* dy, int64_t dy_stride, int64_t dy_offset, float* dx,
                            int64_t dx_stride, int64_t dx_offset);
//   dA_h += sum_s dy_s,h x_s,h^T;  scratch [width, padded nodes]
void attention_gradient(const PositionalAttention& attention, int samples, int64_t width,
                        const float* dy, int64_t dy_stride, int64_t dy_offset, const float* x,
                        int64_t x_stride, int64_t x_offset, float* da, float* scratch);
// A [m, n] += x y^T.
void add_outer(int64_t m, int64_t n, const float* x, const float* y, float* a, int64_t lda);

// [heads, nodes, nodes] without padding.
void copy_attention(const PositionalAttention& attention, float* out);

// Multiply-adds of one layer as the architecture is written (the encoder and decoder are not
// counted, as in the paper's own accounting of a layer).
StageWork attention_layer_work(const ModelSpec& spec, const PositionalAttention* positional);

}  // namespace posattn::engine

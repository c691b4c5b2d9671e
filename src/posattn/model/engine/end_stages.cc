#include "posattn/model/engine/end_stages.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/engine/layer_maps.h"
#include "posattn/model/tensor_names.h"

namespace posattn::engine {

MiddleStage::MiddleStage(const ModelSpec& spec, const ParameterLayout& layout, int layer, int index)
    : map_(LinearMap::find(layout, names::of_layer(layer, names::mlp_map(index)))),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()) {}

void MiddleStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                          AttentionForm /*form*/) {
  nodes_ = active.count();
  map_.prepare(parameters.values().data());
}

int64_t MiddleStage::tape_size(int samples) const {
  return samples * int64_t{most_nodes_} * input_stride();
}
int64_t MiddleStage::scratch_size(int samples) const { return tape_size(samples); }

void MiddleStage::forward(int samples, float* tape, float* /*scratch*/, float* output,
                          int64_t output_stride) const {
  map_.forward(samples * int64_t{nodes_}, tape, input_stride(), output, output_stride,
               Store::bias_relu);
}

float* MiddleStage::backward(int64_t /*first*/, int samples, const float* tape, const float* output,
                             int64_t output_stride, float* doutput, int64_t doutput_stride,
                             bool wants_dinput, float* scratch, float* gradient) const {
  const int64_t rows = samples * int64_t{nodes_};
  tile_kernels().relu_gradient(rows, map_.out(), output, output_stride, doutput, doutput_stride,
                               map_.bias_gradient(gradient));
  map_.weight_gradient(rows, tape, input_stride(), doutput, doutput_stride, gradient);
  if (!wants_dinput) return nullptr;
  map_.input_gradient(rows, doutput, doutput_stride, scratch, input_stride(), Store::assign);
  return scratch;
}

void MiddleStage::finish(float* gradient, Parameters<float>& out, float* /*dpositions*/) {
  map_.finish(gradient, out.values().data());
}

DecoderStage::DecoderStage(const ModelSpec& spec, const ParameterLayout& layout)
    : last_(layer_input_map(spec, layout, spec.depth)),
      decoder_(LinearMap::find(layout, names::decoding)),
      hidden_(last_.in),
      width_(last_.out),
      out_(decoder_.out),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()),
      map_(out_ * padded(hidden_)),
      transposed_(hidden_ * padded(out_)),
      bias_(padded(out_)) {}

void DecoderStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                           AttentionForm /*form*/) {
  nodes_ = active.count();
  weights_ = parameters.values().data();
  gemm(false, false, out_, hidden_, width_, 1, weights_ + decoder_.weight, width_,
       weights_ + last_.weight, hidden_, 0, map_.data(), padded(hidden_));
  std::copy_n(weights_ + decoder_.bias, out_, bias_.data());
  gemm(false, false, out_, 1, width_, 1, weights_ + decoder_.weight, width_, weights_ + last_.bias,
       1, 1, bias_.data(), 1);
  tile_kernels().transpose(out_, hidden_, map_.data(), padded(hidden_), transposed_.data(),
                           padded(out_));
}

int64_t DecoderStage::tape_size(int samples) const {
  return samples * int64_t{most_nodes_} * input_stride();
}
int64_t DecoderStage::scratch_size(int samples) const { return tape_size(samples); }

void DecoderStage::forward(int samples, float* tape, float* /*scratch*/, float* output,
                           int64_t output_stride) const {
  tile_kernels().product(samples * int64_t{nodes_}, out_, hidden_, tape, input_stride(), 1,
                         transposed_.data(), padded(out_), output, output_stride, Store::bias,
                         bias_.data());
}

float* DecoderStage::backward(int64_t /*first*/, int samples, const float* tape,
                              const float* /*output*/, int64_t /*output_stride*/, float* doutput,
                              int64_t doutput_stride, bool wants_dinput, float* scratch,
                              float* gradient) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_};
  // dD [out, hidden] += dy^T s; df += column sums of dy.
  kernels.product(out_, hidden_, rows, doutput, 1, doutput_stride, tape, input_stride(), gradient,
                  padded(hidden_), Store::add, nullptr);
  kernels.column_sums(rows, out_, doutput, doutput_stride, gradient + out_ * padded(hidden_));
  if (!wants_dinput) return nullptr;
  kernels.product(rows, hidden_, out_, doutput, doutput_stride, 1, map_.data(), padded(hidden_),
                  scratch, input_stride(), Store::assign, nullptr);
  return scratch;
}

void DecoderStage::finish(float* gradient, Parameters<float>& out, float* /*dpositions*/) {
  const int64_t ld = padded(hidden_);
  const float* dbias = gradient + out_ * ld;
  float* values = out.values().data();
  const float *last = weights_ + last_.weight, *last_bias = weights_ + last_.bias;
  const float* decoder = weights_ + decoder_.weight;
  gemm(false, true, out_, width_, hidden_, 1, gradient, ld, last, hidden_, 0,
       values + decoder_.weight, width_);
  gemm(false, false, out_, width_, 1, 1, dbias, 1, last_bias, width_, 1, values + decoder_.weight,
       width_);
  gemm(true, false, width_, hidden_, out_, 1, decoder, width_, gradient, ld, 0,
       values + last_.weight, hidden_);
  gemm(true, false, width_, 1, out_, 1, decoder, width_, dbias, 1, 0, values + last_.bias, 1);
  std::copy_n(dbias, out_, values + decoder_.bias);
}

StageWork DecoderStage::actual_work() const {
  return {static_cast<double>(hidden_ * out_) * most_nodes_, 0};
}

}  // namespace posattn::engine

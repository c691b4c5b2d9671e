#include "posattn/model/tiles/end_stages.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/layer_maps.h"

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

InputStage::InputStage(const ModelSpec& spec, const ParameterLayout& layout)
    : spec_(spec),
      map_(layer_input_map(spec, layout, 0)),
      data_(map_, spec.data_columns),
      stride_(padded(spec.width)),
      nodes_(spec.nodes()) {}

void InputStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                         AttentionForm /*form*/) {
  weights_ = parameters.values().data();
  nodes_ = active.count();
  active_ = active;
  data_.prepare(weights_);
  const int64_t d = spec_.width, p = spec_.encoding_size;
  const float* from_positions = weights_ + map_.weight + spec_.data_columns;
  table_.assign(nodes_ * stride_, 0.0f);
  for (int i = 0; i < nodes_; ++i) std::copy_n(weights_ + map_.bias, d, &table_[i * stride_]);
  if (spec_.encoding == Encoding::one_hot) {
    for (int64_t c = 0; c < d; ++c) {
      for (int i = 0; i < nodes_; ++i) {
        table_[i * stride_ + c] += from_positions[c * map_.in + active.index[i]];
      }
    }
    return;
  }
  const std::vector<float> all = positions_of(spec_, parameters);
  positions_.resize(nodes_ * p);
  for (int i = 0; i < nodes_; ++i) {
    std::copy_n(&all[active.index[i] * p], p, &positions_[i * p]);
  }
  gemm(false, true, nodes_, d, p, 1, positions_.data(), p, from_positions, map_.in, 1,
       table_.data(), stride_);
}

int64_t InputStage::tape_size(int samples) const {
  return samples * int64_t{spec_.nodes()} * input_stride();
}
int64_t InputStage::gradient_size() const {
  return data_.gradient_size() + spec_.nodes() * stride_;  // dD, then dT
}

void InputStage::forward(int samples, float* tape, float* /*scratch*/, float* output,
                         int64_t output_stride) const {
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t i = 0; i < nodes_; ++i) {
      std::copy_n(&table_[i * stride_], spec_.width, output + (s * nodes_ + i) * output_stride);
    }
  }
  data_.forward(samples * int64_t{nodes_}, tape, input_stride(), output, output_stride, Store::add);
}

float* InputStage::backward(int64_t /*first*/, int samples, const float* tape,
                            const float* /*output*/, int64_t /*output_stride*/, float* doutput,
                            int64_t doutput_stride, bool /*wants_dinput*/, float* /*scratch*/,
                            float* gradient) const {
  data_.weight_gradient(samples * int64_t{nodes_}, tape, input_stride(), doutput, doutput_stride,
                        gradient);
  float* dtable = gradient + data_.gradient_size();
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t i = 0; i < nodes_; ++i) {
      const float* dx = doutput + (s * nodes_ + i) * doutput_stride;
      for (int64_t c = 0; c < spec_.width; ++c) dtable[i * stride_ + c] += dx[c];
    }
  }
  return nullptr;
}

void InputStage::finish(float* gradient, Parameters<float>& out, float* dpositions) {
  const int64_t d = spec_.width, p = spec_.encoding_size;
  float* values = out.values().data();
  const float* dtable = gradient + data_.gradient_size();
  data_.finish(gradient, values, /*with_bias=*/false);
  std::fill_n(values + map_.bias, d, 0.0f);
  tile_kernels().column_sums(nodes_, d, dtable, stride_, values + map_.bias);
  float* dfrom = values + map_.weight + spec_.data_columns;
  if (spec_.encoding == Encoding::one_hot) {
    for (int64_t c = 0; c < d; ++c) {
      std::fill_n(dfrom + c * map_.in, p, 0.0f);
      for (int i = 0; i < nodes_; ++i) {
        dfrom[c * map_.in + active_.index[i]] = dtable[i * stride_ + c];
      }
    }
    return;
  }
  gemm(true, false, d, p, nodes_, 1, dtable, stride_, positions_.data(), p, 0, dfrom, map_.in);
  if (!dpositions) return;
  for (int i = 0; i < nodes_; ++i) {
    gemm(false, false, 1, p, d, 1, dtable + i * stride_, stride_,
         weights_ + map_.weight + spec_.data_columns, map_.in, 1,
         dpositions + int64_t{1} * active_.index[i] * p, p);
  }
}

StageWork InputStage::actual_work() const { return {data_.work() * spec_.nodes(), 0}; }

}  // namespace posattn::engine

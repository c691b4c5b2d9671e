#include "posattn/model/engine/input_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/engine/layer_maps.h"

namespace posattn::engine {

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

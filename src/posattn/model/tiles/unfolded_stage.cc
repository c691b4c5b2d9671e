#include "posattn/model/tiles/unfolded_stage.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/layer_maps.h"

namespace posattn::engine {

UnfoldedStage::UnfoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer)
    : spec_(spec),
      input_map_(layer_input_map(spec, layout, layer)),
      value_(LinearMap::find(layout, names::of_layer(layer, names::value))),
      output_(LinearMap::find(layout, names::of_layer(layer, names::output))),
      first_(LinearMap::find(layout, names::of_layer(layer, names::mlp_map(0)))),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()),
      stride_s_(padded(input_map_.in())),
      stride_x_(padded(2 * spec.width)),
      stride_d_(padded(spec.width)) {
  if (spec.attention == AttentionSource::positions) {
    positional_ = std::make_unique<PositionalAttention>(spec, layout, layer);
    return;
  }
  query_key_layout_ = LinearMap::find(layout, names::of_layer(layer, names::query_key));
  query_key_ = DenseMap(query_key_layout_, spec.width);
  stride_qk_ = padded(query_key_layout_.out);
  scale_ = 1.0f / std::sqrt(static_cast<float>(spec.key_size()));
  data_ =
      std::make_unique<DataAttention>(most_nodes_, spec.heads, spec.key_size(), spec.head_size());
}

UnfoldedStage::Tape UnfoldedStage::tape(int samples) const {
  const int64_t rows = samples * int64_t{most_nodes_};
  Tape t{};
  t.x = rows * stride_s_;
  t.v = t.x + rows * stride_x_;
  t.m = t.v + rows * stride_d_;
  t.qk = t.m + rows * stride_d_;
  t.kept = t.qk + rows * stride_qk_;
  t.end = t.kept + (data_ ? data_->kept_size(samples) : 0);
  return t;
}

UnfoldedStage::Gradient UnfoldedStage::gradient() const {
  Gradient g{};
  g.value = g.input_map + input_map_.gradient_size();
  g.output = g.value + value_.gradient_size();
  g.first = g.output + output_.gradient_size();
  g.query_key = g.first + first_.gradient_size();
  g.table = g.query_key + (data_ ? query_key_.gradient_size() : 0);
  g.attention = g.table + (data_ ? most_nodes_ * stride_qk_ : 0);
  g.end = g.attention + (positional_ ? positional_->gradient_size() : 0);
  return g;
}

int64_t UnfoldedStage::tape_size(int samples) const { return tape(samples).end; }
int64_t UnfoldedStage::gradient_size() const { return gradient().end; }

int64_t UnfoldedStage::scratch_size(int samples) const {
  // d[x | o], dm, dv, ds, dqk, attention's own.
  const int64_t rows = samples * int64_t{most_nodes_};
  return rows * (stride_x_ + 2 * stride_d_ + stride_s_ + stride_qk_) +
         (data_ ? data_->scratch_size() : spec_.head_size() * padded(most_nodes_));
}

void UnfoldedStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                            AttentionForm form) {
  weights_ = parameters.values().data();
  nodes_ = active.count();
  active_ = active;
  for (DenseMap* map : {&input_map_, &value_, &output_, &first_}) map->prepare(weights_);
  if (positional_) {
    positional_->compute(parameters, active, form);
    return;
  }
  query_key_.prepare(weights_);
  data_->set_active(nodes_, form);
  // qk_proj adds the same to a node whatever the data: its bias and, for [x | P], its part of P.
  const int64_t total = query_key_layout_.out, p = spec_.encoding_size;
  table_.assign(nodes_ * stride_qk_, 0.0f);
  for (int i = 0; i < nodes_; ++i) {
    std::copy_n(weights_ + query_key_layout_.bias, total, &table_[i * stride_qk_]);
  }
  if (spec_.attention == AttentionSource::data_and_positions) {
    const std::vector<float> all = positions_of(spec_, parameters);
    positions_.resize(nodes_ * p);
    for (int i = 0; i < nodes_; ++i) {
      std::copy_n(&all[active.index[i] * p], p, &positions_[i * p]);
    }
    gemm(false, true, nodes_, total, p, 1, positions_.data(), p,
         weights_ + query_key_layout_.weight + spec_.width, query_key_layout_.in, 1, table_.data(),
         stride_qk_);
  }
}

void UnfoldedStage::query_key_forward(int64_t rows, const float* x, float* qk) const {
  const int64_t total = query_key_layout_.out, dk = spec_.key_size();
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(&table_[r % nodes_ * stride_qk_], total, qk + r * stride_qk_);
  }
  query_key_.forward(rows, x, stride_x_, qk, stride_qk_, Store::add);
  if (spec_.rotation == Rotation::rope)
    rotate_rows(rows, 2 * spec_.heads, dk, active_, 1, qk, stride_qk_);
  for (int64_t r = 0; r < rows; ++r) {
    for (int h = 0; h < spec_.heads; ++h) {
      float* query = qk + r * stride_qk_ + h * 2 * dk;
      for (int64_t c = 0; c < dk; ++c) query[c] *= scale_;
    }
  }
}

void UnfoldedStage::forward(int samples, float* tape_data, float* scratch, float* output,
                            int64_t output_stride) const {
  const Tape t = tape(samples);
  const int64_t rows = samples * int64_t{nodes_}, d = spec_.width, dh = spec_.head_size();
  float *x = tape_data + t.x, *v = tape_data + t.v, *m = tape_data + t.m;
  input_map_.forward(rows, tape_data, stride_s_, x, stride_x_, Store::bias);
  value_.forward(rows, x, stride_x_, v, stride_d_, Store::bias);
  if (positional_) {
    mix_samples(*positional_, samples, dh, {v, stride_d_, dh}, {m, stride_d_, dh});
  } else {
    const int64_t dk = spec_.key_size();
    float* qk = tape_data + t.qk;
    query_key_forward(rows, x, qk);
    data_->forward(samples, {qk, stride_qk_, 2 * dk}, {qk + dk, stride_qk_, 2 * dk},
                   {v, stride_d_, dh}, {m, stride_d_, dh}, tape_data + t.kept, scratch);
  }
  output_.forward(rows, m, stride_d_, x + d, stride_x_, Store::bias);
  first_.forward(rows, x, stride_x_, output, output_stride, Store::bias_relu);
}

float* UnfoldedStage::backward(int64_t /*first*/, int samples, const float* tape_data,
                               const float* output, int64_t output_stride, float* doutput,
                               int64_t doutput_stride, bool wants_dinput, float* scratch,
                               float* sums) const {
  const TileKernels& kernels = tile_kernels();
  const Tape t = tape(samples);
  const Gradient g = gradient();
  const int64_t rows = samples * int64_t{nodes_}, d = spec_.width, dh = spec_.head_size();
  const float *x = tape_data + t.x, *v = tape_data + t.v, *m = tape_data + t.m;
  float* dx = scratch;  // d[x | o]
  float* dm = dx + rows * stride_x_;
  float* dv = dm + rows * stride_d_;
  float* ds = dv + rows * stride_d_;
  float* dqk = ds + rows * stride_s_;
  float* rest = dqk + rows * stride_qk_;

  kernels.relu_gradient(rows, spec_.mlp_width, output, output_stride, doutput, doutput_stride,
                        first_.bias_gradient(sums + g.first));
  first_.weight_gradient(rows, x, stride_x_, doutput, doutput_stride, sums + g.first);
  first_.input_gradient(rows, doutput, doutput_stride, dx, stride_x_, Store::assign);

  const float* d_o = dx + d;
  output_.weight_gradient(rows, m, stride_d_, d_o, stride_x_, sums + g.output);
  output_.sum_bias(rows, d_o, stride_x_, sums + g.output);
  output_.input_gradient(rows, d_o, stride_x_, dm, stride_d_, Store::assign);

  std::fill_n(dv, rows * stride_d_, 0.0f);
  if (positional_) {
    attention_gradient(*positional_, samples, dh, {dm, stride_d_, dh}, {v, stride_d_, dh},
                       sums + g.attention, rest);
    mix_samples_transposed(*positional_, samples, dh, {dm, stride_d_, dh}, {dv, stride_d_, dh});
  } else {
    const int64_t dk = spec_.key_size(), total = query_key_layout_.out;
    const float* qk = tape_data + t.qk;
    std::fill_n(dqk, rows * stride_qk_, 0.0f);
    data_->backward(samples, {qk, stride_qk_, 2 * dk}, {qk + dk, stride_qk_, 2 * dk},
                    {v, stride_d_, dh}, {m, stride_d_, dh}, {dm, stride_d_, dh},
                    {dqk, stride_qk_, 2 * dk}, {dqk + dk, stride_qk_, 2 * dk}, {dv, stride_d_, dh},
                    tape_data + t.kept, rest);
    for (int64_t r = 0; r < rows; ++r) {
      for (int h = 0; h < spec_.heads; ++h) {
        float* dquery = dqk + r * stride_qk_ + h * 2 * dk;
        for (int64_t c = 0; c < dk; ++c) dquery[c] *= scale_;
      }
    }
    if (spec_.rotation == Rotation::rope)
      rotate_rows(rows, 2 * spec_.heads, dk, active_, -1, dqk, stride_qk_);
    query_key_.weight_gradient(rows, x, stride_x_, dqk, stride_qk_, sums + g.query_key);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = sums + g.table + r % nodes_ * stride_qk_;
      for (int64_t c = 0; c < total; ++c) row[c] += dqk[r * stride_qk_ + c];
    }
    query_key_.input_gradient(rows, dqk, stride_qk_, dx, stride_x_, Store::add);
  }
  value_.weight_gradient(rows, x, stride_x_, dv, stride_d_, sums + g.value);
  value_.sum_bias(rows, dv, stride_d_, sums + g.value);
  value_.input_gradient(rows, dv, stride_d_, dx, stride_x_, Store::add);

  input_map_.weight_gradient(rows, tape_data, stride_s_, dx, stride_x_, sums + g.input_map);
  input_map_.sum_bias(rows, dx, stride_x_, sums + g.input_map);
  if (!wants_dinput) return nullptr;
  input_map_.input_gradient(rows, dx, stride_x_, ds, stride_s_, Store::assign);
  return ds;
}

void UnfoldedStage::finish(float* sums, Parameters<float>& out, float* dpositions) {
  const Gradient g = gradient();
  float* values = out.values().data();
  input_map_.finish(sums + g.input_map, values);
  value_.finish(sums + g.value, values);
  output_.finish(sums + g.output, values);
  first_.finish(sums + g.first, values);
  if (positional_) {
    positional_->gradient(sums + g.attention, out, dpositions);
    return;
  }
  query_key_.finish(sums + g.query_key, values, /*with_bias=*/false);
  const int64_t total = query_key_layout_.out, p = spec_.encoding_size;
  const float* dtable = sums + g.table;
  float* dbias = values + query_key_layout_.bias;
  std::fill_n(dbias, total, 0.0f);
  tile_kernels().column_sums(nodes_, total, dtable, stride_qk_, dbias);
  if (spec_.attention == AttentionSource::data_and_positions) {
    gemm(true, false, total, p, nodes_, 1, dtable, stride_qk_, positions_.data(), p, 0,
         values + query_key_layout_.weight + spec_.width, query_key_layout_.in);
    if (dpositions) {
      for (int i = 0; i < nodes_; ++i) {
        gemm(false, false, 1, p, total, 1, dtable + i * stride_qk_, stride_qk_,
             weights_ + query_key_layout_.weight + spec_.width, query_key_layout_.in, 1,
             dpositions + active_.index[i] * p, p);
      }
    }
  }
}

bool UnfoldedStage::attention(const float* tape_data, float* scratch, float* out) const {
  if (positional_) {
    copy_attention(*positional_, out);
  } else {
    const int64_t dk = spec_.key_size();
    const float* qk = tape_data + tape(1).qk;
    data_->matrices({qk, stride_qk_, 2 * dk}, {qk + dk, stride_qk_, 2 * dk}, scratch, out);
  }
  return true;
}

StageWork UnfoldedStage::nominal_work() const {
  return attention_layer_work(spec_, positional_.get());
}

StageWork UnfoldedStage::actual_work() const {
  const double n = most_nodes_, dk = spec_.key_size();
  double per_node =
      input_map_.work() + value_.work() + output_.work() + first_.work() + n * spec_.width;
  if (data_) per_node += query_key_.work() + spec_.heads * n * dk;
  return {per_node * n, positional_ ? positional_->work() : 0};
}

}  // namespace posattn::engine

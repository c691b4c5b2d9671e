#include "posattn/model/engine/folded_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/tensor_names.h"

namespace posattn::engine {

bool FoldedStage::supports(const ModelSpec& spec) {
  return known_to_stages(spec) &&
         (spec.attention == AttentionSource::positions || FoldedScores::supports(spec));
}

FoldedStage::FoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer,
                         LayerInput input, Mixes mixes)
    : spec_(spec),
      input_map_(spec, layout, layer, input),
      value_(LinearMap::find(layout, names::of_layer(layer, names::value))),
      output_(LinearMap::find(layout, names::of_layer(layer, names::output))),
      first_(LinearMap::find(layout, names::of_layer(layer, names::mlp_map(0)))),
      k_(input_map_.in()),
      mixed_(mixes == Mixes::state ? k_ : spec.head_size()),
      inputs_(k_ + spec.heads * mixed_),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()),
      stride_c_(padded(inputs_)),
      stride_m_(padded(spec.mlp_width)),
      stride_v_(mixes == Mixes::state ? 0 : padded(spec.width)) {
  if (spec.attention == AttentionSource::positions) {
    positional_ = std::make_unique<PositionalAttention>(spec, layout, layer);
    return;
  }
  scores_ = std::make_unique<FoldedScores>(spec, layout, layer, k_);
  data_ = std::make_unique<DataAttention>(most_nodes_, spec.heads, k_, mixed_);
}

void FoldedStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                          AttentionForm form) {
  weights_ = parameters.values().data();
  nodes_ = active.count();
  // Not in the constructor: the network makes a stage of each kind to compare their work.
  m_.resize(spec_.mlp_width * stride_c_);
  m_transposed_.resize(inputs_ * stride_m_);
  c_.resize(stride_m_);
  fold();
  if (positional_) {
    positional_->compute(parameters, active, form);
  } else {
    data_->set_active(nodes_, form);
    scores_->prepare(weights_, input_map_.weight(weights_), input_map_.bias(weights_));
  }
}

int64_t FoldedStage::tape_size(int samples) const {
  return tape_kept(samples) + (data_ ? data_->kept_size(samples) : 0);
}

int64_t FoldedStage::scratch_size(int samples) const {
  // Gradients of inputs, r and queries; attention's own or a head's operand transposed.
  return samples * int64_t{most_nodes_} * (stride_c_ + stride_v_ + queries_stride()) +
         (data_ ? data_->scratch_size() : mixed_ * padded(most_nodes_));
}

int64_t FoldedStage::gradient_size() const {
  return gradient_attention() +
         (positional_ ? positional_->gradient_size() : scores_->gradient_size());
}

void FoldedStage::forward(int samples, float* tape, float* scratch, float* output,
                          int64_t output_stride) const {
  const int64_t rows = samples * int64_t{nodes_};
  float* r = tape + tape_values(samples);
  make_values(rows, tape, r);
  const Headed<const float> values = operands<const float>(tape, r);
  const Headed<float> mixed{tape + k_, stride_c_, mixed_};
  if (positional_) {
    mix_samples(*positional_, samples, mixed_, values, mixed);
  } else {
    float* queries = tape + tape_queries(samples);
    scores_->queries(rows, tape, stride_c_, queries);
    data_->forward(samples, {queries, queries_stride(), k_}, {tape, stride_c_, 0}, values, mixed,
                   tape + tape_kept(samples), scratch);
  }
  tile_kernels().product(rows, spec_.mlp_width, inputs_, tape, stride_c_, 1, m_transposed_.data(),
                         stride_m_, output, output_stride, Store::bias_relu, c_.data());
}

float* FoldedStage::backward(int64_t first, int samples, const float* tape, const float* output,
                             int64_t output_stride, float* doutput, int64_t doutput_stride,
                             bool wants_dinput, float* scratch, float* gradient) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_}, hidden = spec_.mlp_width;
  float* ds = scratch;  // [rows, inputs]: ds, then d(A_h r_h)
  float* dr = ds + rows * stride_c_;
  float* rest = dr + rows * stride_v_;
  kernels.relu_gradient(rows, hidden, output, output_stride, doutput, doutput_stride,
                        gradient + gradient_c());
  kernels.product(inputs_, hidden, rows, tape, 1, stride_c_, doutput, doutput_stride, gradient,
                  stride_m_, Store::add, nullptr);
  kernels.product(rows, inputs_, hidden, doutput, doutput_stride, 1, m_.data(), stride_c_, ds,
                  stride_c_, Store::assign, nullptr);
  std::fill_n(dr, rows * stride_v_, 0.0f);
  const Headed<const float> values = operands(tape, tape + tape_values(samples));
  const Headed<float> dvalues = operands(ds, dr);
  const Headed<const float> dmixed{ds + k_, stride_c_, mixed_};
  float* sums = gradient + gradient_attention();
  if (data_) {
    const float* queries = tape + tape_queries(samples);
    float* dqueries = rest;
    data_->backward(samples, {queries, queries_stride(), k_}, {tape, stride_c_, 0}, values,
                    {tape + k_, stride_c_, mixed_}, dmixed, {dqueries, queries_stride(), k_},
                    {ds, stride_c_, 0}, dvalues, tape + tape_kept(samples),
                    dqueries + rows * queries_stride());
    scores_->gradient(rows, tape, stride_c_, dqueries, sums);
    if (wants_dinput) scores_->input_gradient(rows, dqueries, ds, stride_c_);
  } else {
    add_attention_gradient(first, samples, dmixed, values, sums, rest);
    if (wants_dinput || mixes_values()) {
      mix_samples_transposed(*positional_, samples, mixed_, dmixed, dvalues);
    }
  }
  values_gradient(rows, tape, dr, ds, wants_dinput, gradient);
  return wants_dinput ? ds : nullptr;
}

void FoldedStage::add_attention_gradient(int64_t /*first*/, int samples, Headed<const float> dmixed,
                                         Headed<const float> values, float* sums,
                                         float* scratch) const {
  attention_gradient(*positional_, samples, mixed_, dmixed, values, sums, scratch);
}

void FoldedStage::finish(float* gradient, Parameters<float>& out, float* dpositions) {
  unfold(gradient, out);
  if (positional_) {
    positional_->gradient(attention_sums(gradient), out, dpositions);
  } else {
    float* values = out.values().data();
    scores_->finish(gradient + gradient_attention(), values, input_map_.weight_gradient(values),
                    input_map_.bias_gradient(values));
  }
}

bool FoldedStage::attention(const float* tape, float* scratch, float* out) const {
  if (positional_) {
    copy_attention(*positional_, out);
  } else {
    data_->matrices({tape + tape_queries(1), queries_stride(), k_}, {tape, stride_c_, 0}, scratch,
                    out);
  }
  return true;
}

StageWork FoldedStage::nominal_work() const {
  return attention_layer_work(spec_, positional_.get());
}

StageWork FoldedStage::actual_work() const {
  const double k = static_cast<double>(k_), n = most_nodes_, heads = spec_.heads;
  double per_node =
      static_cast<double>(inputs_) * spec_.mlp_width + heads * n * static_cast<double>(mixed_);
  if (mixes_values()) per_node += k * spec_.width;
  if (data_) per_node += scores_->work() + heads * n * k;
  return {per_node * n, positional_ ? positional_->work() : 0};
}

}  // namespace posattn::engine

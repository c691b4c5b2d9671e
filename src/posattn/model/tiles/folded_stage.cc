#include "posattn/model/tiles/folded_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/folded_scores.h"
#include "posattn/model/tiles/key_scores.h"

namespace posattn::engine {

bool FoldedStage::supports(const ModelSpec& spec) {
  return known_to_stages(spec) && (spec.attention == AttentionSource::positions ||
                                   FoldedScores::supports(spec) || KeyScores::needed(spec));
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
  if (FoldedScores::supports(spec)) {
    scores_ = std::make_unique<FoldedScores>(spec, layout, layer, k_);
  } else {
    scores_ = std::make_unique<KeyScores>(spec, layer, k_);
  }
  data_ = std::make_unique<DataAttention>(most_nodes_, spec.heads, scores_->key_size(), mixed_);
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
    scores_->prepare(parameters, active, input_map_.weight(weights_), input_map_.bias(weights_));
  }
}

int64_t FoldedStage::tape_size(int samples) const {
  return tape_kept(samples) + (data_ ? data_->kept_size(samples) : 0);
}

int64_t FoldedStage::scratch_size(int samples) const {
  // Gradients of inputs, r and queries; attention's own or a head's operand transposed.
  const int64_t rows = samples * int64_t{most_nodes_};
  return rows * (stride_c_ + stride_v_) +
         (data_ ? padded(scores_->scratch_size(rows)) + data_->scratch_size()
                : mixed_ * padded(most_nodes_));
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
    float* made = tape + tape_queries(samples);
    const TileState s{samples, nodes_, stride_c_, tape};
    scores_->forward(s, made);
    data_->forward(samples, scores_->queries(made), scores_->keys(s, made), values, mixed,
                   tape + tape_kept(samples), scratch, scores_->offset(nullptr));
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
    const float* made = tape + tape_queries(samples);
    const TileState s{samples, nodes_, stride_c_, tape};
    data_->backward(samples, scores_->queries(made), scores_->keys(s, made), values,
                    {tape + k_, stride_c_, mixed_}, dmixed, scores_->dqueries(rows, rest),
                    scores_->dkeys(rows, rest, {ds, stride_c_, 0}), dvalues,
                    tape + tape_kept(samples), rest + padded(scores_->scratch_size(rows)),
                    scores_->offset(sums));
    scores_->backward(s, made, rest, sums, ds, wants_dinput);
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
    scores_->finish(gradient + gradient_attention(), out, input_map_.weight_gradient(values),
                    input_map_.bias_gradient(values), dpositions);
  }
}

bool FoldedStage::attention(const float* tape, float* scratch, float* out) const {
  if (positional_) {
    copy_attention(*positional_, out);
  } else {
    const float* made = tape + tape_queries(1);
    data_->matrices(scores_->queries(made), scores_->keys({1, nodes_, stride_c_, tape}, made),
                    scratch, out, scores_->offset(nullptr));
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
  if (data_) per_node += scores_->work() + heads * n * static_cast<double>(scores_->key_size());
  return {per_node * n, positional_ ? positional_->work() : 0};
}

}  // namespace posattn::engine

#include "posattn/model/engine/folded_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/engine/layer_maps.h"
#include "posattn/model/tensor_names.h"

namespace posattn::engine {

bool FoldedStage::supports(const ModelSpec& spec) {
  return known_to_stages(spec) &&
         (spec.attention == AttentionSource::positions || FoldedScores::supports(spec));
}

FoldedStage::FoldedStage(const ModelSpec& spec, const ParameterLayout& layout, int layer)
    : spec_(spec),
      enter_(entering_map(spec, layout, layer)),
      value_(LinearMap::find(layout, names::of_layer(layer, names::value))),
      output_(LinearMap::find(layout, names::of_layer(layer, names::output))),
      first_(LinearMap::find(layout, names::of_layer(layer, names::mlp_map(0)))),
      k_(enter_.in),
      inputs_((1 + spec.heads) * enter_.in),
      heads_(spec.heads),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()),
      stride_c_(padded(inputs_)),
      stride_m_(padded(spec.mlp_width)) {
  if (spec.attention == AttentionSource::positions) {
    positional_ = std::make_unique<PositionalAttention>(spec, layout, layer);
    return;
  }
  scores_ = std::make_unique<FoldedScores>(spec, layout, layer, k_);
  data_ = std::make_unique<DataAttention>(most_nodes_, heads_, k_, k_);
}

// Not in the constructor: the network makes a stage of each kind to compare their work.
void FoldedStage::allocate() {
  const int64_t d = spec_.width, hidden = spec_.mlp_width;
  m_transposed_.resize(inputs_ * stride_m_);
  m_.resize(hidden * stride_c_);
  c_.resize(stride_m_);
  p_.resize(hidden * d);
  b_.resize(heads_ * hidden * d);
}

void FoldedStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                          AttentionForm form) {
  allocate();
  weights_ = parameters.values().data();
  nodes_ = active.count();
  fold_maps();
  if (positional_) {
    positional_->compute(parameters, active, form);
  } else {
    data_->set_active(nodes_, form);
    scores_->prepare(weights_, weights_ + enter_.weight, weights_ + enter_.bias);
  }
}

int64_t FoldedStage::tape_size(int samples) const {
  return tape_kept(samples) + (data_ ? data_->kept_size(samples) : 0);
}

int64_t FoldedStage::scratch_size(int samples) const {
  // [dC | dT | attention's own]; many nodes transpose a sample's input (see backward).
  const int64_t rows = samples * int64_t{most_nodes_};
  return rows * (stride_c_ + queries_stride()) +
         (data_ ? data_->scratch_size() : k_ * padded(most_nodes_));
}

int64_t FoldedStage::gradient_size() const {
  return gradient_attention() +
         (positional_ ? positional_->gradient_size() : scores_->gradient_size());
}

void FoldedStage::forward(int samples, float* tape, float* scratch, float* output,
                          int64_t output_stride) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_};
  if (from_data()) {
    float* t = tape + tape_queries(samples);
    scores_->queries(rows, tape, stride_c_, t);
    const Headed<const float> s{tape, stride_c_, 0};
    data_->forward(samples, {t, queries_stride(), k_}, s, s, {tape + k_, stride_c_, k_},
                   tape + tape_kept(samples), scratch);
  } else {
    mix_samples(*positional_, samples, k_, tape, stride_c_, 0, tape + k_, stride_c_, k_);
  }
  kernels.product(rows, spec_.mlp_width, inputs_, tape, stride_c_, 1, m_transposed_.data(),
                  stride_m_, output, output_stride, Store::bias_relu, c_.data());
}

float* FoldedStage::backward(int64_t /*first*/, int samples, const float* tape, const float* output,
                             int64_t output_stride, float* doutput, int64_t doutput_stride,
                             bool wants_dinput, float* scratch, float* gradient) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_}, hidden = spec_.mlp_width;
  kernels.relu_gradient(rows, hidden, output, output_stride, doutput, doutput_stride,
                        gradient + gradient_c());
  kernels.product(inputs_, hidden, rows, tape, 1, stride_c_, doutput, doutput_stride, gradient,
                  stride_m_, Store::add, nullptr);
  float* dc = scratch;  // [rows, (1 + H) k]: ds, then d(A_h s)
  kernels.product(rows, inputs_, hidden, doutput, doutput_stride, 1, m_.data(), stride_c_, dc,
                  stride_c_, Store::assign, nullptr);
  float* dattention = gradient + gradient_attention();
  if (from_data()) {
    const float* t = tape + tape_queries(samples);
    float* dt = dc + rows * stride_c_;
    const Headed<const float> s{tape, stride_c_, 0};
    const Headed<float> ds{dc, stride_c_, 0};
    data_->backward(samples, {t, queries_stride(), k_}, s, s, {tape + k_, stride_c_, k_},
                    {dc + k_, stride_c_, k_}, {dt, queries_stride(), k_}, ds, ds,
                    tape + tape_kept(samples), dt + rows * queries_stride());
    scores_->gradient(rows, tape, stride_c_, dt, dattention);
    if (wants_dinput) scores_->input_gradient(rows, dt, dc, stride_c_);
  } else {
    attention_gradient(*positional_, samples, k_, dc + k_, stride_c_, k_, tape, stride_c_, 0,
                       dattention, dc + rows * stride_c_);
    if (wants_dinput) {
      mix_samples_transposed(*positional_, samples, k_, dc + k_, stride_c_, k_, dc, stride_c_, 0);
    }
  }
  return wants_dinput ? dc : nullptr;
}

void FoldedStage::finish(float* gradient, Parameters<float>& out, float* dpositions) {
  unfold_maps(gradient, out);
  if (positional_) {
    positional_->gradient(gradient + gradient_attention(), out, dpositions);
  } else {
    float* values = out.values().data();
    scores_->finish(gradient + gradient_attention(), values, values + enter_.weight,
                    values + enter_.bias);
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
  const double k = static_cast<double>(k_), n = most_nodes_, hidden = spec_.mlp_width;
  double per_node = (1 + heads_) * k * hidden + heads_ * n * k;
  if (from_data()) per_node += scores_->work() + heads_ * n * k;
  return {per_node * n, positional_ ? positional_->work() : 0};
}

}  // namespace posattn::engine

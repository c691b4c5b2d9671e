#include "posattn/model/engine/value_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/engine/layer_maps.h"
#include "posattn/model/tensor_names.h"

namespace posattn::engine {

bool ValueStage::supports(const ModelSpec& spec) {
  return known_to_stages(spec) && spec.nodes() >= fewest_nodes &&
         (spec.attention == AttentionSource::positions || FoldedScores::supports(spec));
}

ValueStage::ValueStage(const ModelSpec& spec, const ParameterLayout& layout, int layer,
                       LayerInput input)
    : spec_(spec),
      enter_(spec, layout, layer, input),
      value_(LinearMap::find(layout, names::of_layer(layer, names::value))),
      output_(LinearMap::find(layout, names::of_layer(layer, names::output))),
      first_(LinearMap::find(layout, names::of_layer(layer, names::mlp_map(0)))),
      k_(enter_.in()),
      most_nodes_(spec.nodes()),
      nodes_(spec.nodes()),
      stride_c_(padded(enter_.in() + spec.width)),
      stride_d_(padded(spec.width)),
      stride_m_(padded(spec.mlp_width)) {
  if (spec.attention == AttentionSource::positions) {
    positional_ = std::make_unique<PositionalAttention>(spec, layout, layer);
    return;
  }
  scores_ = std::make_unique<FoldedScores>(spec, layout, layer, k_);
  data_ = std::make_unique<DataAttention>(most_nodes_, spec.heads, k_, spec.head_size());
}

void ValueStage::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                         AttentionForm form) {
  weights_ = parameters.values().data();
  nodes_ = active.count();
  fold();
  if (positional_) {
    positional_->compute(parameters, active, form);
  } else {
    data_->set_active(nodes_, form);
    scores_->prepare(weights_, enter_.weight(weights_), enter_.bias(weights_));
  }
}

int64_t ValueStage::tape_size(int samples) const {
  return tape_kept(samples) + (data_ ? data_->kept_size(samples) : 0);
}
int64_t ValueStage::scratch_size(int samples) const {
  // d[s | t], dr, those of the queries, and attention's own or a head's values transposed.
  return samples * int64_t{most_nodes_} * (stride_c_ + stride_d_ + queries_stride()) +
         (data_ ? data_->scratch_size() : spec_.head_size() * padded(most_nodes_));
}
int64_t ValueStage::gradient_size() const {
  if (data_) return gradient_attention() + scores_->gradient_size();
  return gradient_attention() + (kept_samples_ > 0 ? 0 : positional_->gradient_size());
}

void ValueStage::begin_gradient(int64_t samples) {
  if (data_) return;
  constexpr int64_t groups = 8;  // of tiles, at least
  const int64_t factors = 2 * samples * spec_.width * positional_->stride();
  const bool keeps = factors <= groups * spec_.heads * positional_->head_stride();
  kept_samples_ = keeps ? samples : 0;
  kept_dt_.resize(keeps ? factors / 2 : 0);
  kept_r_.resize(kept_dt_.size());
  da_.resize(keeps ? spec_.heads * positional_->head_stride() : 0);
}

void ValueStage::keep_factors(int64_t first, int samples, const float* dt, const float* r) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t dh = spec_.head_size(), ld = positional_->stride();
  for (int h = 0; h < spec_.heads; ++h) {
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t to = (h * kept_samples_ + first + s) * dh * ld;
      kernels.transpose(nodes_, dh, dt + s * nodes_ * stride_c_ + h * dh, stride_c_, &kept_dt_[to],
                        ld);
      kernels.transpose(nodes_, dh, r + s * nodes_ * stride_d_ + h * dh, stride_d_, &kept_r_[to],
                        ld);
    }
  }
}

void ValueStage::multiply_factors() {
  const int64_t inner = kept_samples_ * spec_.head_size(), ld = positional_->stride();
  for (int h = 0; h < spec_.heads; ++h) {
    gemm(true, false, nodes_, nodes_, inner, 1, &kept_dt_[h * inner * ld], ld,
         &kept_r_[h * inner * ld], ld, 0, &da_[h * positional_->head_stride()], ld);
  }
}

void ValueStage::forward(int samples, float* tape, float* scratch, float* output,
                         int64_t output_stride) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_}, d = spec_.width, dh = spec_.head_size();
  float* r = tape + tape_values(samples);
  kernels.product(rows, d, k_, tape, stride_c_, 1, v_transposed_.data(), stride_d_, r, stride_d_,
                  Store::assign, nullptr);
  if (positional_) {
    mix_samples(*positional_, samples, dh, r, stride_d_, dh, tape + k_, stride_c_, dh);
  } else {
    float* t = tape + tape_queries(samples);
    scores_->queries(rows, tape, stride_c_, t);
    data_->forward(samples, {t, queries_stride(), k_}, {tape, stride_c_, 0}, {r, stride_d_, dh},
                   {tape + k_, stride_c_, dh}, tape + tape_kept(samples), scratch);
  }
  kernels.product(rows, spec_.mlp_width, k_ + d, tape, stride_c_, 1, m_transposed_.data(),
                  stride_m_, output, output_stride, Store::bias_relu, c_.data());
}

float* ValueStage::backward(int64_t first, int samples, const float* tape, const float* output,
                            int64_t output_stride, float* doutput, int64_t doutput_stride,
                            bool wants_dinput, float* scratch, float* gradient) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = samples * int64_t{nodes_}, d = spec_.width, dh = spec_.head_size();
  const int64_t hidden = spec_.mlp_width;
  const float* r = tape + tape_values(samples);
  float* dc = scratch;  // [rows, k + d]: ds, then d(A_h r_h)
  float* dr = dc + rows * stride_c_;
  float* rest = dr + rows * stride_d_;
  kernels.relu_gradient(rows, hidden, output, output_stride, doutput, doutput_stride,
                        gradient + gradient_c());
  kernels.product(k_ + d, hidden, rows, tape, 1, stride_c_, doutput, doutput_stride, gradient,
                  stride_m_, Store::add, nullptr);
  kernels.product(rows, k_ + d, hidden, doutput, doutput_stride, 1, m_.data(), stride_c_, dc,
                  stride_c_, Store::assign, nullptr);
  std::fill_n(dr, rows * stride_d_, 0.0f);
  if (data_) {
    const float* t = tape + tape_queries(samples);
    float* dt = rest;
    data_->backward(samples, {t, queries_stride(), k_}, {tape, stride_c_, 0}, {r, stride_d_, dh},
                    {tape + k_, stride_c_, dh}, {dc + k_, stride_c_, dh},
                    {dt, queries_stride(), k_}, {dc, stride_c_, 0}, {dr, stride_d_, dh},
                    tape + tape_kept(samples), dt + rows * queries_stride());
    scores_->gradient(rows, tape, stride_c_, dt, gradient + gradient_attention());
    if (wants_dinput) scores_->input_gradient(rows, dt, dc, stride_c_);
  } else {
    if (kept_samples_ > 0) {
      keep_factors(first, samples, dc + k_, r);
    } else {
      attention_gradient(*positional_, samples, dh, dc + k_, stride_c_, dh, r, stride_d_, dh,
                         gradient + gradient_attention(), rest);
    }
    mix_samples_transposed(*positional_, samples, dh, dc + k_, stride_c_, dh, dr, stride_d_, dh);
  }
  kernels.product(k_, d, rows, tape, 1, stride_c_, dr, stride_d_, gradient + gradient_v(),
                  stride_d_, Store::add, nullptr);
  if (!wants_dinput) return nullptr;
  kernels.product(rows, k_, d, dr, stride_d_, 1, v_.data(), padded(k_), dc, stride_c_, Store::add,
                  nullptr);
  return dc;
}

void ValueStage::finish(float* gradient, Parameters<float>& out, float* dpositions) {
  unfold(gradient, out);
  if (data_) {
    float* values = out.values().data();
    return scores_->finish(gradient + gradient_attention(), values, enter_.weight_gradient(values),
                           enter_.bias_gradient(values));
  }
  if (kept_samples_ > 0) multiply_factors();
  positional_->gradient(kept_samples_ > 0 ? da_.data() : gradient + gradient_attention(), out,
                        dpositions);
}

bool ValueStage::attention(const float* tape, float* scratch, float* out) const {
  if (positional_) {
    copy_attention(*positional_, out);
  } else {
    data_->matrices({tape + tape_queries(1), queries_stride(), k_}, {tape, stride_c_, 0}, scratch,
                    out);
  }
  return true;
}

StageWork ValueStage::nominal_work() const {
  return attention_layer_work(spec_, positional_.get());
}

StageWork ValueStage::actual_work() const {
  const double k = static_cast<double>(k_), n = most_nodes_, d = spec_.width;
  double per_node = k * d + (k + d) * spec_.mlp_width + n * d;
  if (data_) per_node += scores_->work() + spec_.heads * n * k;
  return {per_node * n, positional_ ? positional_->work() : 0};
}

}  // namespace posattn::engine

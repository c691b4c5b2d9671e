#include "posattn/model/tiles/folded_scores.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/layer_maps.h"

namespace posattn::engine {

bool FoldedScores::supports(const ModelSpec& spec) {
  return spec.attention == AttentionSource::data && spec.rotation == Rotation::none &&
         spec.scores == Scores::dot && spec.source_scale == SourceScale::none &&
         spec.score_bias == ScoreBias::none;
}

FoldedScores::FoldedScores(const ModelSpec& spec, const ParameterLayout& layout, int layer,
                           int64_t k)
    : query_key_(LinearMap::find(layout, names::of_layer(layer, names::query_key))),
      d_(spec.width),
      k_(k),
      heads_(spec.heads),
      stride_t_(padded(spec.heads * k)),
      scale_(1.0f / std::sqrt(static_cast<float>(spec.width))) {}

void FoldedScores::prepare(const Parameters<float>& parameters, const ActiveNodes&,
                           const float* e_weight, const float* e_bias) {
  weights_ = parameters.values().data();
  e_weight_ = e_weight;
  e_bias_ = e_bias;
  g_.resize(k_ * stride_t_);
  g_bias_.resize(stride_t_);
  g_transposed_.resize(heads_ * k_ * padded(k_));
  query_.resize(heads_ * d_ * k_);
  key_.resize(heads_ * d_ * k_);
  query_bias_.resize(heads_ * d_);
  for (int h = 0; h < heads_; ++h) {
    const float* wq = weights_ + query_key_.weight + h * 2 * d_ * d_;
    const float* wk = wq + d_ * d_;
    float *query = &query_[h * d_ * k_], *key = &key_[h * d_ * k_], *bias = &query_bias_[h * d_];
    gemm(false, false, d_, k_, d_, 1, wq, d_, e_weight, k_, 0, query, k_);
    gemm(false, false, d_, k_, d_, 1, wk, d_, e_weight, k_, 0, key, k_);
    std::copy_n(weights_ + query_key_.bias + h * 2 * d_, d_, bias);
    gemm(false, false, d_, 1, d_, 1, wq, d_, e_bias, 1, 1, bias, 1);
    gemm(true, false, k_, k_, d_, scale_, query, k_, key, k_, 0, &g_[h * k_], stride_t_);
    gemm(true, false, k_, 1, d_, scale_, key, k_, bias, 1, 0, &g_bias_[h * k_], 1);
    tile_kernels().transpose(k_, k_, &g_[h * k_], stride_t_, &g_transposed_[h * k_ * padded(k_)],
                             padded(k_));
  }
}

void FoldedScores::forward(const TileState& s, float* t) const {
  tile_kernels().product(s.rows(), heads_ * k_, k_, s.data, s.stride, 1, g_.data(), stride_t_, t,
                         stride_t_, Store::bias, g_bias_.data());
}

void FoldedScores::backward(const TileState& s, const float*, float* dt, float* sums, float* ds,
                            bool wants_ds) const {
  const TileKernels& kernels = tile_kernels();
  kernels.product(k_, heads_ * k_, s.rows(), s.data, 1, s.stride, dt, stride_t_, sums, stride_t_,
                  Store::add, nullptr);
  kernels.column_sums(s.rows(), heads_ * k_, dt, stride_t_, sums + k_ * stride_t_);
  if (!wants_ds) return;
  kernels.product(s.rows(), k_, heads_ * k_, dt, stride_t_, 1, g_transposed_.data(), padded(k_), ds,
                  s.stride, Store::add, nullptr);
}

void FoldedScores::finish(const float* sums, Parameters<float>& out, float* de, float* de_bias,
                          float*) const {
  float* values = out.values().data();
  const float* dg_bias_all = sums + k_ * stride_t_;
  Buffer<float> dquery(d_ * k_), dkey(d_ * k_), dbias(d_);
  for (int h = 0; h < heads_; ++h) {
    const float* wq = weights_ + query_key_.weight + h * 2 * d_ * d_;
    const float* wk = wq + d_ * d_;
    const float *query = &query_[h * d_ * k_], *key = &key_[h * d_ * k_];
    const float *dg = sums + h * k_, *dg_bias = dg_bias_all + h * k_;
    float* dwq = values + query_key_.weight + h * 2 * d_ * d_;
    float* dwk = dwq + d_ * d_;
    float* dbq = values + query_key_.bias + h * 2 * d_;
    // G = scale Q^T K, g = scale K^T bias
    gemm(false, true, d_, k_, k_, scale_, key, k_, dg, stride_t_, 0, dquery.data(), k_);
    gemm(false, false, d_, k_, k_, scale_, query, k_, dg, stride_t_, 0, dkey.data(), k_);
    gemm(false, false, d_, k_, 1, scale_, &query_bias_[h * d_], 1, dg_bias, k_, 1, dkey.data(), k_);
    gemm(false, false, d_, 1, k_, scale_, key, k_, dg_bias, 1, 0, dbias.data(), 1);
    // Q = Wq E, K = Wk E, bias = Wq e + bq. The key's bias never matters.
    gemm(false, true, d_, d_, k_, 1, dquery.data(), k_, e_weight_, k_, 0, dwq, d_);
    add_outer(d_, d_, dbias.data(), e_bias_, dwq, d_);
    gemm(false, true, d_, d_, k_, 1, dkey.data(), k_, e_weight_, k_, 0, dwk, d_);
    std::copy_n(dbias.data(), d_, dbq);
    std::fill_n(dbq + d_, d_, 0.0f);
    gemm(true, false, d_, k_, d_, 1, wq, d_, dquery.data(), k_, 1, de, k_);
    gemm(true, false, d_, k_, d_, 1, wk, d_, dkey.data(), k_, 1, de, k_);
    gemm(true, false, d_, 1, d_, 1, wq, d_, dbias.data(), 1, 1, de_bias, 1);
  }
}

}  // namespace posattn::engine

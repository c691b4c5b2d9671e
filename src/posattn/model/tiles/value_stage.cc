#include "posattn/model/tiles/value_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::engine {

void ValueStage::fold() {
  const TileKernels& kernels = tile_kernels();
  const int64_t d = spec_.width, hidden = spec_.mlp_width, ld1 = 2 * d;
  const float *e = input_map_.weight(weights_), *wv = weights_ + value_.weight;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d;
  v_.resize(d * padded(k_));
  v_transposed_.resize(k_ * stride_v_);
  gemm(false, false, hidden, k_, d, 1, w1x, ld1, e, k_, 0, m_.data(), stride_c_);
  gemm(false, false, hidden, d, d, 1, w1o, ld1, weights_ + output_.weight, d, 0, &m_[k_],
       stride_c_);
  gemm(false, false, d, k_, d, 1, wv, d, e, k_, 0, v_.data(), padded(k_));
  kernels.transpose(hidden, inputs_, m_.data(), stride_c_, m_transposed_.data(), stride_m_);
  kernels.transpose(d, k_, v_.data(), padded(k_), v_transposed_.data(), stride_v_);

  const float* e_bias = input_map_.bias(weights_);
  value_bias_.assign(weights_ + value_.bias, weights_ + value_.bias + d);
  gemm(false, false, d, 1, d, 1, wv, d, e_bias, 1, 1, value_bias_.data(), 1);
  std::copy_n(weights_ + first_.bias, hidden, c_.data());
  gemm(false, false, hidden, 1, d, 1, w1x, ld1, e_bias, 1, 1, c_.data(), 1);
  gemm(false, false, hidden, 1, d, 1, &m_[k_], stride_c_, value_bias_.data(), 1, 1, c_.data(), 1);
  gemm(false, false, hidden, 1, d, 1, w1o, ld1, weights_ + output_.bias, 1, 1, c_.data(), 1);
}

void ValueStage::unfold(const float* gradient, Parameters<float>& out) {
  const int64_t d = spec_.width, hidden = spec_.mlp_width, ld1 = 2 * d;
  const float *e = input_map_.weight(weights_), *e_bias = input_map_.bias(weights_);
  const float *wv = weights_ + value_.weight, *wo = weights_ + output_.weight;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d;
  float* values = out.values().data();
  float *de = input_map_.weight_gradient(values), *de_bias = input_map_.bias_gradient(values);
  float *dwv = values + value_.weight, *dbv = values + value_.bias;
  float *dw1x = values + first_.weight, *dw1o = dw1x + d;
  const float* dm = gradient;                   // [k, stride_m]: dM_0 transposed
  const float* dp = gradient + k_ * stride_m_;  // [d, stride_m]: dP transposed
  const float* dv = gradient + gradient_v();    // [k, stride_d]: dV transposed
  const float* dc = gradient + gradient_c();

  // M_0 = W1x E, and the constant's W1x e.
  gemm(true, true, hidden, d, k_, 1, dm, stride_m_, e, k_, 0, dw1x, ld1);
  gemm(false, false, hidden, d, 1, 1, dc, 1, e_bias, d, 1, dw1x, ld1);
  gemm(true, true, d, k_, hidden, 1, w1x, ld1, dm, stride_m_, 0, de, k_);
  gemm(true, false, d, 1, hidden, 1, w1x, ld1, dc, 1, 0, de_bias, 1);
  // The constant's P w with w = Wv e + bv: dw = P^T dc, dP += dc w^T.
  gemm(true, false, d, 1, hidden, 1, &m_[k_], stride_c_, dc, 1, 0, dbv, 1);
  Buffer<float> dp_all(hidden * d);
  tile_kernels().transpose(d, hidden, dp, stride_m_, dp_all.data(), d);
  gemm(false, false, hidden, d, 1, 1, dc, 1, value_bias_.data(), d, 1, dp_all.data(), d);
  // V = Wv E, and w.
  gemm(true, true, d, d, k_, 1, dv, stride_v_, e, k_, 0, dwv, d);
  gemm(false, false, d, d, 1, 1, dbv, 1, e_bias, d, 1, dwv, d);
  gemm(true, true, d, k_, d, 1, wv, d, dv, stride_v_, 1, de, k_);
  gemm(true, false, d, 1, d, 1, wv, d, dbv, 1, 1, de_bias, 1);
  // P = W1o Wo, and the constant's W1o bo.
  gemm(false, true, hidden, d, d, 1, dp_all.data(), d, wo, d, 0, dw1o, ld1);
  gemm(false, false, hidden, d, 1, 1, dc, 1, weights_ + output_.bias, d, 1, dw1o, ld1);
  gemm(true, false, d, d, hidden, 1, w1o, ld1, dp_all.data(), d, 0, values + output_.weight, d);
  gemm(true, false, d, 1, hidden, 1, w1o, ld1, dc, 1, 0, values + output_.bias, 1);
  std::copy_n(dc, hidden, values + first_.bias);
}

void ValueStage::make_values(int64_t rows, const float* s, float* r) const {
  tile_kernels().product(rows, spec_.width, k_, s, stride_c_, 1, v_transposed_.data(), stride_v_, r,
                         stride_v_, Store::assign, nullptr);
}

void ValueStage::values_gradient(int64_t rows, const float* s, const float* dr, float* ds,
                                 bool wants_ds, float* gradient) const {
  const TileKernels& kernels = tile_kernels();
  kernels.product(k_, spec_.width, rows, s, 1, stride_c_, dr, stride_v_, gradient + gradient_v(),
                  stride_v_, Store::add, nullptr);
  if (!wants_ds) return;
  kernels.product(rows, k_, spec_.width, dr, stride_v_, 1, v_.data(), padded(k_), ds, stride_c_,
                  Store::add, nullptr);
}

int64_t ValueStage::gradient_size() const {
  return kept_samples_ > 0 ? gradient_attention() : FoldedStage::gradient_size();
}

void ValueStage::begin_gradient(int64_t samples) {
  if (!positional_) return;
  constexpr int64_t groups = 8;  // of tiles, at least
  const int64_t factors = 2 * samples * spec_.width * positional_->stride();
  const bool keeps = factors <= groups * spec_.heads * positional_->head_stride();
  kept_samples_ = keeps ? samples : 0;
  kept_dmixed_.resize(keeps ? factors / 2 : 0);
  kept_values_.resize(kept_dmixed_.size());
  da_.resize(keeps ? spec_.heads * positional_->head_stride() : 0);
}

void ValueStage::add_attention_gradient(int64_t first, int samples, Headed<const float> dmixed,
                                        Headed<const float> values, float* sums,
                                        float* scratch) const {
  if (kept_samples_ == 0) {
    return FoldedStage::add_attention_gradient(first, samples, dmixed, values, sums, scratch);
  }
  const TileKernels& kernels = tile_kernels();
  const int64_t ld = positional_->stride();
  for (int h = 0; h < spec_.heads; ++h) {
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t to = (h * kept_samples_ + first + s) * mixed_ * ld;
      kernels.transpose(nodes_, mixed_, dmixed.at(s * nodes_, h), dmixed.stride, &kept_dmixed_[to],
                        ld);
      kernels.transpose(nodes_, mixed_, values.at(s * nodes_, h), values.stride, &kept_values_[to],
                        ld);
    }
  }
}

float* ValueStage::attention_sums(float* gradient) {
  if (kept_samples_ == 0) return FoldedStage::attention_sums(gradient);
  const int64_t inner = kept_samples_ * mixed_, ld = positional_->stride();
  for (int h = 0; h < spec_.heads; ++h) {
    gemm(true, false, nodes_, nodes_, inner, 1, &kept_dmixed_[h * inner * ld], ld,
         &kept_values_[h * inner * ld], ld, 0, &da_[h * positional_->head_stride()], ld);
  }
  return da_.data();
}

namespace {

// y [m] = or += alpha W [m, n] x, and the transposed form.
void times_vector(int64_t m, int64_t n, float alpha, const float* w, int64_t ldw, const float* x,
                  float beta, float* y) {
  gemm(false, false, m, 1, n, alpha, w, ldw, x, 1, beta, y, 1);
}
void transposed_times_vector(int64_t m, int64_t n, float alpha, const float* w, int64_t ldw,
                             const float* x, float beta, float* y) {
  gemm(true, false, n, 1, m, alpha, w, ldw, x, 1, beta, y, 1);
}

}  // namespace

void StateStage::fold() {
  const TileKernels& kernels = tile_kernels();
  const int64_t d = spec_.width, hidden = spec_.mlp_width, dh = spec_.head_size();
  const float *e_weight = input_map_.weight(weights_), *e_bias = input_map_.bias(weights_);
  const float *wv = weights_ + value_.weight, *bv = weights_ + value_.bias;
  const float *wo = weights_ + output_.weight, *bo = weights_ + output_.bias;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d, *b1 = weights_ + first_.bias;
  const int64_t ld1 = 2 * d;
  p_.resize(hidden * d);
  b_.resize(spec_.heads * hidden * d);

  gemm(false, false, hidden, d, d, 1, w1o, ld1, wo, d, 0, p_.data(), d);
  gemm(false, false, hidden, k_, d, 1, w1x, ld1, e_weight, k_, 0, m_.data(), stride_c_);
  for (int h = 0; h < spec_.heads; ++h) {
    float* b = &b_[h * hidden * d];
    gemm(false, false, hidden, d, dh, 1, &p_[h * dh], d, wv + h * dh * d, d, 0, b, d);
    gemm(false, false, hidden, k_, d, 1, b, d, e_weight, k_, 0, &m_[(1 + h) * k_], stride_c_);
  }
  kernels.transpose(hidden, inputs_, m_.data(), stride_c_, m_transposed_.data(), stride_m_);

  // c = W1x e + sum_h B_h e + (P bv + W1o bo) + b1
  std::copy_n(b1, hidden, c_.data());
  times_vector(hidden, d, 1, w1x, ld1, e_bias, 1, c_.data());
  for (int h = 0; h < spec_.heads; ++h) {
    times_vector(hidden, d, 1, &b_[h * hidden * d], d, e_bias, 1, c_.data());
  }
  times_vector(hidden, d, 1, p_.data(), d, bv, 1, c_.data());
  times_vector(hidden, d, 1, w1o, ld1, bo, 1, c_.data());
}

void StateStage::unfold(const float* gradient, Parameters<float>& out) {
  const int64_t d = spec_.width, hidden = spec_.mlp_width, dh = spec_.head_size();
  const int64_t ld1 = 2 * d;
  const float *e_weight = input_map_.weight(weights_), *e_bias = input_map_.bias(weights_);
  const float *wv = weights_ + value_.weight, *bv = weights_ + value_.bias;
  const float *wo = weights_ + output_.weight, *bo = weights_ + output_.bias;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d;
  float* values = out.values().data();
  float *de = input_map_.weight_gradient(values), *de_bias = input_map_.bias_gradient(values);
  float *dwv = values + value_.weight, *dbv = values + value_.bias;
  float *dwo = values + output_.weight, *dbo = values + output_.bias;
  float *dw1x = values + first_.weight, *dw1o = dw1x + d, *db1 = values + first_.bias;
  const float* dm_transposed = gradient;  // [(1 + H) k, stride_m], as accumulated
  const float* dc = gradient + gradient_c();

  // M_0 = W1x E
  gemm(true, true, hidden, d, k_, 1, dm_transposed, stride_m_, e_weight, k_, 0, dw1x, ld1);
  add_outer(hidden, d, dc, e_bias, dw1x, ld1);
  gemm(true, true, d, k_, hidden, 1, w1x, ld1, dm_transposed, stride_m_, 0, de, k_);
  transposed_times_vector(hidden, d, 1, w1x, ld1, dc, 0, de_bias);
  // M_h = B_h E, B_h = P_h Wv_h
  Buffer<float> db(hidden * d), dp(hidden * d);
  for (int h = 0; h < spec_.heads; ++h) {
    const float* dm = dm_transposed + (1 + h) * k_ * stride_m_;
    const float* b = &b_[h * hidden * d];
    gemm(true, true, hidden, d, k_, 1, dm, stride_m_, e_weight, k_, 0, db.data(), d);
    add_outer(hidden, d, dc, e_bias, db.data(), d);
    gemm(true, true, d, k_, hidden, 1, b, d, dm, stride_m_, 1, de, k_);
    transposed_times_vector(hidden, d, 1, b, d, dc, 1, de_bias);
    gemm(false, true, hidden, dh, d, 1, db.data(), d, wv + h * dh * d, d, 0, &dp[h * dh], d);
    gemm(true, false, dh, d, hidden, 1, &p_[h * dh], d, db.data(), d, 0, dwv + h * dh * d, d);
  }
  // The constant's P bv: dP += dc bv^T, dbv = P^T dc.
  add_outer(hidden, d, dc, bv, dp.data(), d);
  transposed_times_vector(hidden, d, 1, p_.data(), d, dc, 0, dbv);
  // P = W1o Wo, and the constant's W1o bo.
  gemm(false, true, hidden, d, d, 1, dp.data(), d, wo, d, 0, dw1o, ld1);
  add_outer(hidden, d, dc, bo, dw1o, ld1);
  gemm(true, false, d, d, hidden, 1, w1o, ld1, dp.data(), d, 0, dwo, d);
  transposed_times_vector(hidden, d, 1, w1o, ld1, dc, 0, dbo);
  std::copy_n(dc, hidden, db1);
}

}  // namespace posattn::engine

// Folding and unfolding of ValueStage: products of weights only, once a step. Formulas in
// value_stage.h.
#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/engine/value_stage.h"

namespace posattn::engine {

void ValueStage::fold() {
  const TileKernels& kernels = tile_kernels();
  const int64_t d = spec_.width, hidden = spec_.mlp_width, ld1 = 2 * d;
  const float *e = enter_.weight(weights_), *wv = weights_ + value_.weight;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d;
  m_.resize(hidden * stride_c_);
  m_transposed_.resize((k_ + d) * stride_m_);
  v_.resize(d * padded(k_));
  v_transposed_.resize(k_ * stride_d_);
  gemm(false, false, hidden, k_, d, 1, w1x, ld1, e, k_, 0, m_.data(), stride_c_);
  gemm(false, false, hidden, d, d, 1, w1o, ld1, weights_ + output_.weight, d, 0, &m_[k_],
       stride_c_);
  gemm(false, false, d, k_, d, 1, wv, d, e, k_, 0, v_.data(), padded(k_));
  kernels.transpose(hidden, k_ + d, m_.data(), stride_c_, m_transposed_.data(), stride_m_);
  kernels.transpose(d, k_, v_.data(), padded(k_), v_transposed_.data(), stride_d_);

  const float* e_bias = enter_.bias(weights_);
  value_bias_.assign(weights_ + value_.bias, weights_ + value_.bias + d);
  gemm(false, false, d, 1, d, 1, wv, d, e_bias, 1, 1, value_bias_.data(), 1);
  c_.assign(stride_m_, 0.0f);
  std::copy_n(weights_ + first_.bias, hidden, c_.data());
  gemm(false, false, hidden, 1, d, 1, w1x, ld1, e_bias, 1, 1, c_.data(), 1);
  gemm(false, false, hidden, 1, d, 1, &m_[k_], stride_c_, value_bias_.data(), 1, 1, c_.data(), 1);
  gemm(false, false, hidden, 1, d, 1, w1o, ld1, weights_ + output_.bias, 1, 1, c_.data(), 1);
}

void ValueStage::unfold(const float* gradient, Parameters<float>& out) {
  const int64_t d = spec_.width, hidden = spec_.mlp_width, ld1 = 2 * d;
  const float *e = enter_.weight(weights_), *e_bias = enter_.bias(weights_);
  const float *wv = weights_ + value_.weight, *wo = weights_ + output_.weight;
  const float *w1x = weights_ + first_.weight, *w1o = w1x + d;
  float* values = out.values().data();
  float *de = enter_.weight_gradient(values), *de_bias = enter_.bias_gradient(values);
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
  gemm(true, true, d, d, k_, 1, dv, stride_d_, e, k_, 0, dwv, d);
  gemm(false, false, d, d, 1, 1, dbv, 1, e_bias, d, 1, dwv, d);
  gemm(true, true, d, k_, d, 1, wv, d, dv, stride_d_, 1, de, k_);
  gemm(true, false, d, 1, d, 1, wv, d, dbv, 1, 1, de_bias, 1);
  // P = W1o Wo, and the constant's W1o bo.
  gemm(false, true, hidden, d, d, 1, dp_all.data(), d, wo, d, 0, dw1o, ld1);
  gemm(false, false, hidden, d, 1, 1, dc, 1, weights_ + output_.bias, d, 1, dw1o, ld1);
  gemm(true, false, d, d, hidden, 1, w1o, ld1, dp_all.data(), d, 0, values + output_.weight, d);
  gemm(true, false, d, 1, hidden, 1, w1o, ld1, dc, 1, 0, values + output_.bias, 1);
  std::copy_n(dc, hidden, values + first_.bias);
}

}  // namespace posattn::engine

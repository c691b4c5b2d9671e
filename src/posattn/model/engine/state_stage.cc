#include "posattn/model/engine/state_stage.h"

#include <algorithm>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::engine {
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

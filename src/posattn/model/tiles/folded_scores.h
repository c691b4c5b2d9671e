// Scores of attention from data with everything linear folded: with x = s E^T + e,
//   Q_h K_h^T / sqrt(d_k)  ->  (s G_h + g_h) s^T,   G_h = (Wq E)^T (Wk E) / sqrt(d_k),
//   g_h = (Wk E)^T (Wq e + bq) / sqrt(d_k),
// since terms constant along a row drop out of the softmax. So s itself is the keys of every head,
// and t_h = s G_h + g_h are the queries.
#pragma once

#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class FoldedScores {
 public:
  // Attention from [data | positions] and RoPE do not fold.
  static bool supports(const ModelSpec& spec);
  // k: columns of s.
  FoldedScores(const ModelSpec& spec, const ParameterLayout& layout, int layer, int64_t k);

  void prepare(const float* weights, const float* e_weight, const float* e_bias);
  int64_t stride() const { return stride_t_; }  // between rows of t = [t_1 | t_2 | ...]

  void queries(int64_t rows, const float* s, int64_t s_stride, float* t) const;
  // Sums of dG and dg.
  int64_t gradient_size() const { return (k_ + 1) * stride_t_; }
  void gradient(int64_t rows, const float* s, int64_t s_stride, const float* dt, float* sums) const;
  // ds += what comes through the queries.
  void input_gradient(int64_t rows, const float* dt, float* ds, int64_t ds_stride) const;
  // Into the parameters' gradients: Wq and Wk are written, E and e added to.
  void finish(const float* sums, float* values, float* de, float* de_bias) const;

  double work() const { return static_cast<double>(heads_ * k_ * k_); }  // of t, per node

 private:
  LinearMap query_key_;  // stacked Wq and Wk
  int64_t d_, k_;        // d_k, columns of s
  int heads_;
  int64_t stride_t_;
  float scale_;
  const float *weights_ = nullptr, *e_weight_ = nullptr, *e_bias_ = nullptr;

  Buffer<float> g_;             // [k, stride_t]: the G side by side
  Buffer<float> g_bias_;        // [stride_t]
  Buffer<float> g_transposed_;  // [H k, padded k]
  Buffer<float> query_, key_;   // Wq E, Wk E, [H, d_k, k]
  Buffer<float> query_bias_;    // Wq e + bq, [H, d_k]
};

}  // namespace posattn::engine

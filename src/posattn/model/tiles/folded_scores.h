// Scores of attention from data with everything linear folded: with x = s E^T + e,
//   Q_h K_h^T / sqrt(d_k)  ->  (s G_h + g_h) s^T,   G_h = (Wq E)^T (Wk E) / sqrt(d_k),
//   g_h = (Wk E)^T (Wq e + bq) / sqrt(d_k),
// since terms constant along a row drop out of the softmax. So s itself is the keys of every head,
// and t_h = s G_h + g_h are the queries.
#pragma once

#include "posattn/model/tiles/tile_scores.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class FoldedScores : public TileScores {
 public:
  // Attention from [data | positions], RoPE and scores that are no dot products do not fold.
  static bool supports(const ModelSpec& spec);
  // k: columns of s.
  FoldedScores(const ModelSpec& spec, const ParameterLayout& layout, int layer, int64_t k);

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               const float* e_weight, const float* e_bias) override;
  int64_t key_size() const override { return k_; }
  int64_t tape_size(int64_t rows) const override { return rows * stride_t_; }
  int64_t scratch_size(int64_t rows) const override { return rows * stride_t_; }
  int64_t gradient_size() const override { return (k_ + 1) * stride_t_; }  // dG and dg
  void forward(const TileState& s, float* tape) const override;
  Headed<const float> queries(const float* tape) const override { return {tape, stride_t_, k_}; }
  Headed<const float> keys(const TileState& s, const float*) const override {
    return {s.data, s.stride, 0};
  }
  Headed<float> dqueries(int64_t, float* scratch) const override {
    return {scratch, stride_t_, k_};
  }
  Headed<float> dkeys(int64_t, float*, Headed<float> ds) const override { return ds; }
  void backward(const TileState& s, const float* tape, float* scratch, float* sums, float* ds,
                bool wants_ds) const override;
  void finish(const float* sums, Parameters<float>& out, float* de, float* de_bias,
              float* dpositions) const override;
  double work() const override { return static_cast<double>(heads_ * k_ * k_); }

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

// Queries and keys as kinds of attention have them that change them before their products: unit
// vectors, a source that was divided by its size, scores of positions that are added. With x = s
// E^T + e,
//   y = inv F s + inv f + t_i,   F = W_x E,  f = W_x e,  t_i = W_P P_i + b
// for queries and keys together, W = [W_x | W_P]. inv is 1, or sqrt(N d) / |x| of the sample's (or
// the node's) N d numbers. Then RoPE and the row of the scores (attention/rows.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "posattn/model/attention/rows.h"
#include "posattn/model/tiles/tile_scores.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class KeyScores : public TileScores {
 public:
  // Whether a kind of attention from data wants them, and softmax follows.
  static bool needed(const ModelSpec& spec);
  // k: columns of s.
  KeyScores(const ModelSpec& spec, int layer, int64_t k);
  ~KeyScores() override;

  void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
               const float* e_weight, const float* e_bias) override;
  int64_t key_size() const override { return term_.key_size; }
  int64_t tape_size(int64_t rows) const override;
  int64_t scratch_size(int64_t rows) const override;
  int64_t gradient_size() const override { return sums().end; }
  void forward(const TileState& s, float* tape) const override;
  Headed<const float> queries(const float* tape) const override;
  Headed<const float> keys(const TileState& s, const float* tape) const override;
  ScoreOffset offset(float* sums) const override;
  Headed<float> dqueries(int64_t rows, float* scratch) const override;
  Headed<float> dkeys(int64_t rows, float* scratch, Headed<float> ds) const override;
  void backward(const TileState& s, const float* tape, float* scratch, float* sums, float* ds,
                bool wants_ds) const override;
  void finish(const float* sums, Parameters<float>& out, float* de, float* de_bias,
              float* dpositions) const override;
  double work() const override;

 private:
  // Offsets into the tape: y, then what the scores' row keeps, x and 1 / its size.
  struct Tape {
    int64_t kept, x, inverse, end;
  };
  Tape tape(int64_t rows) const;
  // Offsets into the sums: dF transposed, dt, df, dE transposed and de of the division, scores of
  // positions, numbers of the heads.
  struct Sums {
    int64_t table, constant, e, e_bias, offset, scale, end;
  };
  Sums sums() const;
  bool scaled() const { return scale_ != nullptr; }
  // Numbers that are divided by one size, in rows.
  int64_t rows_of_part(int64_t nodes) const { return scale_->by_sample ? nodes : 1; }
  void scaled_backward(const TileState& s, const float* tape, float* dy, float* scratch,
                       float* sums, float* ds, bool wants_ds) const;

  const ModelSpec spec_;
  const Plan plan_;
  const AttentionBlock& block_;
  const DataTerm& term_;
  const DataRow& row_;
  const ScaleRow* scale_;
  int64_t heads_, d_, k_, total_;  // width, columns of s, numbers of queries and keys of a node
  LinearMaps<float> maps_;
  std::unique_ptr<NodeContext<float>> nodes_;
  const float *weights_ = nullptr, *e_weight_ = nullptr, *e_bias_ = nullptr;
  int64_t stride_t_, stride_k_, stride_d_;  // padded total, k and d
  Buffer<float> f_;                         // F [total, stride_k]
  Buffer<float> f_transposed_;              // [k, stride_t]
  Buffer<float> constant_;                  // f [total]
  Buffer<float> table_;                     // t, with f where nothing is divided [nodes, total]
  Buffer<float> e_transposed_;              // E^T [k, stride_d]
  Buffer<float> offset_;                    // [heads, nodes, padded nodes]
};

}  // namespace posattn::engine

// Queries and keys as kinds of attention have them that change them before their products: unit
// vectors, a source that was divided by its size, scores of positions that are added. With
// x = s E^T + e and W = [W_x | W_P], for queries and keys together,
//   y_i = G z_i + t_i
//   z = s,            G = W_x E,   t_i = W_P P_i + b + W_x e      where nothing is divided
//   z = inv x,        G = W_x,     t_i = W_P P_i + b              inv = sqrt(N d) / |x| of the
//   sample's
//                                                                 N d numbers, or of the node's d
// Then RoPE and the row of the scores (attention/rows.h).
#pragma once

#include <memory>
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
  int64_t tape_size(int64_t rows) const override { return tape(rows).end; }
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
  // Offsets into the tape: y, then what the scores' row keeps, z and 1 / |x| where x is divided.
  struct Tape {
    int64_t kept, z, inverse, end;
  };
  Tape tape(int64_t rows) const;
  // Offsets into the sums: dG transposed, dt, dE transposed and de of the division, scores of
  // positions, numbers of the heads.
  struct Sums {
    int64_t table, e, e_bias, offset, scale, end;
  };
  Sums sums() const;
  bool scaled() const { return scale_ != nullptr; }
  // Numbers that are divided by one size.
  int64_t part(int64_t nodes) const { return scale_->part(nodes, d_); }
  float norm(int64_t nodes) const;
  const float* head_scale() const {
    return term_.head_scale == no_tensor ? nullptr : nodes_->tensor(term_.head_scale);
  }
  void times_factor(int64_t rows, float* y) const;

  const ModelSpec spec_;
  const Plan plan_;
  const AttentionBlock& block_;
  const DataTerm& term_;
  const DataRow& row_;
  const ScaleRow* scale_;
  int64_t d_, k_, z_, total_;  // width, columns of s and z, numbers of queries and keys of a node
  LinearMaps<float> maps_;
  std::unique_ptr<NodeContext<float>> nodes_;
  const float *weights_ = nullptr, *e_weight_ = nullptr, *e_bias_ = nullptr;
  int64_t stride_t_;            // padded total
  Buffer<float> g_;             // G [total, z]
  Buffer<float> g_transposed_;  // [z, stride_t]
  Buffer<float> table_;         // t [nodes, total]
  Buffer<float> e_transposed_;  // E^T [k, padded d]
  Buffer<float> offset_;        // [heads, nodes, padded nodes]
};

}  // namespace posattn::engine

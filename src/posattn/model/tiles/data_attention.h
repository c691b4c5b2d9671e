// Attention computed from the data, sample by sample:
//   A_h = softmax(Q_h K_h^T),  Y_h = A_h V_h        (any 1/sqrt(d_k) is already in Q)
// UnfoldedStage gives it queries, keys and values; FoldedStage gives Q = s G_h + g and the
// activations s as keys and values of every head.
#pragma once

#include <cstdint>

#include "posattn/model/tiles/stage.h"

namespace posattn::engine {

// Matrices of all samples and heads: element (sample s, node i, column c) of head h is
// data[(s * nodes + i) * stride + h * head_offset + c].
template <class T>
struct Headed {
  T* data = nullptr;
  int64_t stride = 0, head_offset = 0;
  T* at(int64_t row, int head) const { return data + row * stride + head * head_offset; }
};

// Scores of positions, [heads, nodes, stride], which are added to those of every sample, and the
// sums of their gradient; null: none.
struct ScoreOffset {
  const float* scores = nullptr;
  float* sums = nullptr;
  explicit operator bool() const { return scores != nullptr; }
};

class DataAttention {
 public:
  DataAttention(int nodes, int heads, int64_t key_size, int64_t value_size);

  // The attention matrices of a tile are kept for backward up to this many nodes, or this many
  // floats of a sample (two heads over 1024 nodes and a few); above, a block of rows at a time is
  // computed again, so that memory does not grow with nodes squared.
  static constexpr int kept_nodes = 144;
  static constexpr int64_t kept_floats = int64_t{9} << 18;

  // Without a gradient to come nothing is kept.
  void set_active(int nodes, AttentionForm form) {
    nodes_ = nodes;
    has_gradient_ = form == AttentionForm::matrix;
  }
  int64_t kept_size(int samples) const;  // for all nodes active
  int64_t scratch_size() const;

  void forward(int samples, Headed<const float> q, Headed<const float> k, Headed<const float> v,
               Headed<float> y, float* kept, float* scratch, ScoreOffset offset = {}) const;

  // dq =, dk +=, dv +=. y as forward left it.
  void backward(int samples, Headed<const float> q, Headed<const float> k, Headed<const float> v,
                Headed<const float> y, Headed<const float> dy, Headed<float> dq, Headed<float> dk,
                Headed<float> dv, const float* kept, float* scratch, ScoreOffset offset = {}) const;

  // Attention of the first sample, [heads, nodes, nodes].
  void matrices(Headed<const float> q, Headed<const float> k, float* scratch, float* out,
                ScoreOffset offset = {}) const;

  int64_t stride() const { return padded(nodes_); }

 private:
  int64_t matrices_size(int nodes) const { return int64_t{heads_} * nodes * padded(nodes); }
  bool keeps_all() const { return matrices_size(most_nodes_) <= kept_floats; }
  bool keeps() const { return has_gradient_ && (nodes_ <= kept_nodes || keeps_all()); }
  // Columns computed of a matrix with one column per node: whole vectors. What is beyond the nodes
  // is never read.
  int64_t whole_columns() const;
  // Rows computed at a time, a number that the product's blocks of rows divide.
  static constexpr int64_t most_rows = 48;
  int64_t row_block() const { return nodes_ <= kept_nodes ? nodes_ : most_rows; }
  // Few nodes have the scores' gradient in passes of its own, as they always had.
  static constexpr int few_nodes = 96;
  // da [count, stride] of rows of one head: that of scores, given V^T (and a row of ones below it).
  void scores_gradient(int64_t count, const float* a, const float* y, int64_t y_stride,
                       const float* dy, int64_t dy_stride, const float* transposed_values,
                       float* with_dots, float* da) const;
  // rows [begin, begin + count) of softmax(Q K^T + offset), given K^T [key_size, stride] and those
  // rows of the offset, if any.
  void rows(int64_t count, const float* q, int64_t q_stride, const float* transposed_keys,
            const float* offset, float* a) const;
  int64_t offset_at(int head, int64_t node) const { return (head * nodes_ + node) * stride(); }

  int most_nodes_, nodes_, heads_;
  bool has_gradient_ = true;
  int64_t key_size_, value_size_;
};

}  // namespace posattn::engine

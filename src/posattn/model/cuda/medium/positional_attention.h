// Attention from positions of all layers at once: A = softmax(Q K^T / sqrt(d_k)) with queries and
// keys from P, or softmax of learned scores; and the gradient from dA back to the parameters. A
// lies among the folded weights, dA among their gradients (FoldedLayout).
#pragma once

#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/relative.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/folding.h"

namespace posattn::cuda::medium {

class PositionalAttention {
 public:
  // `positions` is P by formula, or null.
  PositionalAttention(const FleetShape& shape, const FoldedLayout& layout, const float* positions);
  static int64_t bytes(const FleetShape& shape);

  void enqueue(const FoldingStep& step);
  // Overwrites the gradients of queries', keys' and learned scores' parameters and of a learned P.
  void enqueue_gradient(const FoldingStep& step);

 private:
  int64_t query_key_columns() const { return int64_t{2} * t_.heads * t_.encoding_size; }
  Matrix<float> query_key_heads(float* base, bool keys) const;
  Matrix<const float> positions(const FoldingStep& step) const;
  // Makes scores by distance, and their gradient, from the tables of a layer.
  void relative_scores(const FoldingStep& step);
  void relative_scores_gradient(const FoldingStep& step);
  template <class T>
  RelativeTables<T> relative_tables(T* base, int layer) const;
  // Enqueues a product for each layer.
  void multiply(Product product, const FoldingStep& step) const;
  void learned_positions_gradient(const FoldingStep& step);

  FoldedTensors t_;
  int slots_;
  bool learned_, relative_;
  generic::RelativeShape relative_shape_;
  int64_t distances_ = 0, scratch_ = -1;  // offsets of layer 0's tables; -1: no scratch node
  float scale_;                           // 1 / sqrt(d_k)
  int64_t attention_layer_;               // from a layer's A to the next one's
  const float* positions_;
  // [slots, depth, nodes, query_key_columns]: of each head queries, then keys
  DeviceBuffer<float> query_key_, dquery_key_;
  DeviceBuffer<float> dscores_;  // [slots, depth, heads, nodes, nodes]
};

}  // namespace posattn::cuda::medium

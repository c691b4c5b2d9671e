// Attention that does not depend on the data: A_h = softmax(Q_h K_h^T / sqrt(d_k)) with queries and
// keys from positions, or softmax of learned scores by node or by distance. Computed once a step;
// its gradient is taken once a step from the sum of dA over all samples. For inference over many
// nodes the matrices may be left out (mixing.h).
#pragma once

#include <memory>
#include <vector>

#include "posattn/kernels/generic/relative.h"
#include "posattn/model/engine/mixing.h"
#include "posattn/model/engine/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class PositionalAttention {
 public:
  PositionalAttention(const ModelSpec& spec, const ParameterLayout& layout, int layer);

  void compute(const Parameters<float>& parameters, const ActiveNodes& active, AttentionForm form);

  int heads() const { return spec_.heads; }
  int nodes() const { return nodes_; }               // active ones
  int64_t stride() const { return padded(nodes_); }  // between rows of a matrix
  int64_t head_stride() const { return nodes_ * stride(); }
  const float* matrix(int head) const { return attention_.data() + head * head_stride(); }
  // Applies the head's matrix where that was not formed, else null.
  const Mixing* mixing(int head) const { return mixings_.empty() ? nullptr : mixings_[head].get(); }
  // The size of dA of all heads when all nodes are active.
  int64_t gradient_size() const {
    return int64_t{1} * spec_.heads * spec_.nodes() * padded(spec_.nodes());
  }

  // da [heads, nodes, stride] is overwritten; writes the gradients of its own tensors.
  void gradient(float* da, Parameters<float>& out, float* dpositions);

  double work() const;  // multiply-adds of compute, as the architecture is written

 private:
  void make_queries_and_keys(const Parameters<float>& parameters);
  // Computes `count` rows of one head's matrix: first, first + step, ..., stride() apart.
  void attention_rows(int head, int64_t first, int64_t step, int64_t count, float* out) const;
  bool make_mixings();
  generic::RelativeShape relative_shape() const {
    return {nodes_ - spec_.scratch_nodes, spec_.scratch_nodes, spec_.reach};
  }
  const float* relative_table(int head) const {
    return weights_ + scores_ + head * relative_shape().distances();
  }
  const float* scratch_table(int head) const {
    return weights_ + scratch_scores_ + head * relative_shape().scratch_size();
  }

  const ModelSpec spec_;
  LinearMap query_key_;
  int64_t scores_ = 0, scratch_scores_ = 0;  // of direct or relative attention
  int nodes_ = 0;
  ActiveNodes active_;
  Buffer<float> attention_;                       // [heads, nodes, stride]
  std::vector<std::unique_ptr<Mixing>> mixings_;  // of each head, instead of attention_
  Buffer<float> positions_;                       // [nodes, encoding_size], active rows
  Buffer<float> query_key_values_;  // [nodes, heads, 2, d_k], rotated when the spec says so
  const float* weights_ = nullptr;  // of the last compute, for the gradient of learned positions
};

// Rotates every query and key (rows x parts vectors of `size`) by its node's index; sign -1 undoes.
// Rows repeat the active nodes sample after sample.
void rotate_rows(int64_t rows, int64_t parts, int64_t size, const ActiveNodes& active, int sign,
                 float* x, int64_t stride);

}  // namespace posattn::engine

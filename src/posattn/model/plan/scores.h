// Scores of attention for the reference (double) and the block executor (float), one file for each
// kind. scores(kind, ...) fills [heads, nodes, nodes]; scores_gradient(kind, ...) adds to the
// gradients of the kind's tensors, and to dpositions [nodes, encoding_size] where it reads P.
#pragma once

#include <span>
#include <vector>

#include "posattn/model/parameters.h"
#include "posattn/model/plan/linear_maps.h"
#include "posattn/model/plan/plan.h"

namespace posattn {

// The nodes that take part, and what the model knows of them whatever the data.
template <class T>
struct NodeContext {
  NodeContext(const ModelSpec& spec, const Parameters<T>& parameters, const LinearMaps<T>& maps,
              int real_nodes);

  int count() const { return static_cast<int>(index.size()); }
  const T* tensor(TensorId id) const {
    return parameters.slice(parameters.layout().tensors()[id]).data();
  }

  const ModelSpec& spec;
  const Parameters<T>& parameters;
  const LinearMaps<T>& maps;
  int real_nodes;
  std::vector<int> index;    // by row of P: the first real ones, then the scratch nodes
  std::vector<T> positions;  // [count, encoding_size]; empty without positions
};

// Gradients that do not depend on single samples.
template <class T>
struct ScoreGradients {
  T* tensor(TensorId id) const {
    return parameters.slice(parameters.layout().tensors()[id]).data();
  }
  Parameters<T>& parameters;
  T* positions;  // [count, encoding_size]
};

template <class T>
void scores(const PositionScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out);
template <class T>
void scores_gradient(const PositionScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients);

template <class T>
void scores(const DirectScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out);
template <class T>
void scores_gradient(const DirectScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients);

template <class T>
void scores(const RelativeScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out);
template <class T>
void scores_gradient(const RelativeScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients);

// Routes are attention itself, without a softmax and without a gradient.
template <class T>
void routed_attention_matrix(const RouteScores& kind, const AttentionBlock& block,
                             const NodeContext<T>& nodes, T* out);

}  // namespace posattn

// Scores from queries and keys that are made of P.
#include <cmath>

#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/plan/scores.h"

namespace posattn {

namespace {

// Q_h K_h^T / sqrt(d_k): query_key [nodes, heads, 2 d_k] -> [heads, nodes, nodes].
template <class T>
void query_key_scores(int heads, int key_size, int nodes, const T* query_key, T* out) {
  const int64_t stride = int64_t{2} * heads * key_size;
  const T scale = 1 / std::sqrt(T(key_size));
  for (int h = 0; h < heads; ++h) {
    const T* query = query_key + h * 2 * key_size;
    generic::product(false, true, nodes, nodes, key_size, scale, query, stride, query + key_size,
                     stride, false, out + int64_t{1} * h * nodes * nodes, nodes);
  }
}

// dquery_key (overwritten) from dscores.
template <class T>
void query_key_scores_gradient(int heads, int key_size, int nodes, const T* query_key,
                               const T* dscores, T* dquery_key) {
  const int64_t stride = int64_t{2} * heads * key_size;
  const T scale = 1 / std::sqrt(T(key_size));
  for (int h = 0; h < heads; ++h) {
    const T *query = query_key + h * 2 * key_size, *key = query + key_size;
    T *dquery = dquery_key + h * 2 * key_size, *dkey = dquery + key_size;
    const T* ds = dscores + int64_t{1} * h * nodes * nodes;
    generic::product(false, false, nodes, key_size, nodes, scale, ds, nodes, key, stride, false,
                     dquery, stride);
    generic::product(true, false, nodes, key_size, nodes, scale, ds, nodes, query, stride, false,
                     dkey, stride);
  }
}

template <class T>
std::vector<T> query_key_of_positions(const PositionScores& kind, const AttentionBlock& block,
                                      const NodeContext<T>& nodes) {
  std::vector<T> query_key(int64_t{1} * nodes.count() * kind.query_key.out);
  nodes.maps.forward(kind.query_key, nodes.count(), nodes.positions.data(), query_key.data());
  if (kind.rope) {
    generic::rotate<T>(nodes.count(), 2 * block.heads, block.key_size, nodes.index, 1,
                       query_key.data());
  }
  return query_key;
}

}  // namespace

template <class T>
void scores(const PositionScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out) {
  const std::vector<T> query_key = query_key_of_positions(kind, block, nodes);
  query_key_scores(block.heads, block.key_size, nodes.count(), query_key.data(), out);
}

template <class T>
void scores_gradient(const PositionScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients) {
  const std::vector<T> query_key = query_key_of_positions(kind, block, nodes);
  std::vector<T> dquery_key(query_key.size());
  query_key_scores_gradient(block.heads, block.key_size, nodes.count(), query_key.data(), dscores,
                            dquery_key.data());
  if (kind.rope) {
    generic::rotate<T>(nodes.count(), 2 * block.heads, block.key_size, nodes.index, -1,
                       dquery_key.data());
  }
  nodes.maps.backward(kind.query_key, nodes.count(), nodes.positions.data(), dquery_key.data(),
                      gradients.parameters.values().data(), true, gradients.positions);
}

#define POSATTN_INSTANTIATE(T)                                                                   \
  template void scores(const PositionScores&, const AttentionBlock&, const NodeContext<T>&, T*); \
  template void scores_gradient(const PositionScores&, const AttentionBlock&,                    \
                                const NodeContext<T>&, const T*, const ScoreGradients<T>&);
POSATTN_INSTANTIATE(float)
POSATTN_INSTANTIATE(double)
#undef POSATTN_INSTANTIATE

}  // namespace posattn

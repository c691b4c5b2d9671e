// A learned score for every pair of nodes.
#include "posattn/model/plan/scores.h"

namespace posattn {
namespace {

// Calls pair(place among the scores of the active nodes, place in the tensor).
template <class T, class Pair>
void visit_pairs(const AttentionBlock& block, const NodeContext<T>& nodes, const Pair& pair) {
  const int64_t n = nodes.count(), all = nodes.spec.nodes();
  for (int h = 0; h < block.heads; ++h) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        pair((h * n + i) * n + j, (h * all + nodes.index[i]) * all + nodes.index[j]);
      }
    }
  }
}

}  // namespace

template <class T>
void scores(const DirectScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out) {
  const T* table = nodes.tensor(kind.scores);
  visit_pairs(block, nodes, [&](int64_t active, int64_t stored) { out[active] = table[stored]; });
}

template <class T>
void scores_gradient(const DirectScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients) {
  T* dtable = gradients.tensor(kind.scores);
  visit_pairs(block, nodes,
              [&](int64_t active, int64_t stored) { dtable[stored] += dscores[active]; });
}

#define POSATTN_INSTANTIATE(T)                                                                     \
  template void scores(const DirectScores&, const AttentionBlock&, const NodeContext<T>&, T*);     \
  template void scores_gradient(const DirectScores&, const AttentionBlock&, const NodeContext<T>&, \
                                const T*, const ScoreGradients<T>&);
POSATTN_INSTANTIATE(float)
POSATTN_INSTANTIATE(double)
#undef POSATTN_INSTANTIATE

}  // namespace posattn

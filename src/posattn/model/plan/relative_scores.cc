// A learned score for every distance between nodes.
#include "posattn/kernels/generic/relative.h"
#include "posattn/model/plan/scores.h"

namespace posattn {
namespace {

template <class T>
generic::RelativeShape shape_of(const RelativeScores& kind, const NodeContext<T>& nodes) {
  return {nodes.real_nodes, nodes.spec.scratch_nodes, kind.reach};
}

}  // namespace

template <class T>
void scores(const RelativeScores& kind, const AttentionBlock& block, const NodeContext<T>& nodes,
            T* out) {
  const generic::RelativeShape shape = shape_of(kind, nodes);
  const int64_t n = shape.nodes();
  const T* t = nodes.tensor(kind.distances);
  const T* u = kind.scratch == no_tensor ? nullptr : nodes.tensor(kind.scratch);
  for (int64_t h = 0; h < block.heads; ++h) {
    generic::relative_scores(shape, t + h * shape.distances(),
                             u ? u + h * shape.scratch_size() : nullptr, out + h * n * n, n);
  }
}

template <class T>
void scores_gradient(const RelativeScores& kind, const AttentionBlock& block,
                     const NodeContext<T>& nodes, const T* dscores,
                     const ScoreGradients<T>& gradients) {
  const generic::RelativeShape shape = shape_of(kind, nodes);
  const int64_t n = shape.nodes();
  T* dt = gradients.tensor(kind.distances);
  T* du = kind.scratch == no_tensor ? nullptr : gradients.tensor(kind.scratch);
  for (int64_t h = 0; h < block.heads; ++h) {
    generic::relative_scores_gradient(shape, dscores + h * n * n, n, dt + h * shape.distances(),
                                      du ? du + h * shape.scratch_size() : nullptr);
  }
}

#define POSATTN_INSTANTIATE(T)                                                                   \
  template void scores(const RelativeScores&, const AttentionBlock&, const NodeContext<T>&, T*); \
  template void scores_gradient(const RelativeScores&, const AttentionBlock&,                    \
                                const NodeContext<T>&, const T*, const ScoreGradients<T>&);
POSATTN_INSTANTIATE(float)
POSATTN_INSTANTIATE(double)
#undef POSATTN_INSTANTIATE

}  // namespace posattn

// A learned score for every distance: S_h[i, j] = t_h[i - j], with scores of their own for scratch
// nodes (kernels/generic/relative.h).
#include <algorithm>

#include "posattn/kernels/generic/relative.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

template <class T>
generic::RelativeShape shape_of(const PositionTerm& term, const NodeContext<T>& nodes) {
  return {nodes.real_nodes, nodes.spec.scratch_nodes, term.reach};
}

struct Distance {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    const int64_t heads = spec.heads, scratch = spec.scratch_nodes;
    std::vector<TensorInfo> tensors = {{.name = std::string(names::relative_scores),
                                        .shape = {heads, int64_t{2} * spec.reach - 1}}};
    if (scratch > 0) {
      tensors.push_back(
          {.name = std::string(names::scratch_scores), .shape = {heads, scratch, scratch + 2}});
    }
    return tensors;
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const generic::RelativeShape shape = shape_of(term, nodes);
    const int64_t n = shape.nodes();
    const T* t = nodes.tensor(term.tensors[0]);
    const T* u = term.tensors.size() < 2 ? nullptr : nodes.tensor(term.tensors[1]);
    for (int64_t h = 0; h < heads; ++h) {
      generic::relative_scores(shape, t + h * shape.distances(),
                               u ? u + h * shape.scratch_size() : nullptr, out + h * n * n, n);
    }
  }

  template <class T>
  static void by_distance(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* t,
                          T* u) {
    const generic::RelativeShape shape = shape_of(term, nodes);
    const int64_t own = shape.distances();
    const T* table = nodes.tensor(term.tensors[0]);
    for (int64_t h = 0; h < heads; ++h) {
      for (int32_t d = 1 - shape.real; d < shape.real; ++d) {
        *t++ = table[h * own + shape.distance_place(d, 0)];
      }
    }
    if (shape.scratch > 0) {
      std::copy_n(nodes.tensor(term.tensors[1]), heads * shape.scratch_size(), u);
    }
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    const generic::RelativeShape shape = shape_of(term, nodes);
    const int64_t n = shape.nodes();
    T* dt = gradients.tensor(term.tensors[0]);
    T* du = term.tensors.size() < 2 ? nullptr : gradients.tensor(term.tensors[1]);
    for (int64_t h = 0; h < heads; ++h) {
      generic::relative_scores_gradient(shape, dscores + h * n * n, n, dt + h * shape.distances(),
                                        du ? du + h * shape.scratch_size() : nullptr);
    }
  }
};

}  // namespace

constinit const PositionRow distance_row = position_row<Distance>(false);

}  // namespace posattn

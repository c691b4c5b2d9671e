// Rows of scores that depend on the distance alone: S_h[i, j] = t_h[i - j] between real nodes, and
// 0 where a scratch node takes part. From a struct with
//   tensors(spec, beside_data)
//   table<T>(term, heads, nodes, t)                        t [heads, 2 real - 1] =
//   table_gradient<T>(term, heads, nodes, dt, gradients)   adds to those of its tensors
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "posattn/kernels/generic/relative.h"
#include "posattn/model/attention/tables.h"

namespace posattn {

template <class Row>
struct ByDistance : Row {
  template <class T>
  static generic::RelativeShape shape(const NodeContext<T>& nodes) {
    return {nodes.real_nodes, nodes.spec.scratch_nodes, nodes.real_nodes};
  }

  template <class T>
  static void by_distance(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* t,
                          T* u) {
    Row::table(term, heads, nodes, t);
    std::fill_n(u, heads * shape(nodes).scratch_size(), T(0));
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const generic::RelativeShape s = shape(nodes);
    const int64_t n = s.nodes();
    std::vector<T> t(heads * s.distances()), u(heads * s.scratch_size());
    by_distance(term, heads, nodes, t.data(), u.data());
    for (int64_t h = 0; h < heads; ++h) {
      generic::relative_scores(s, &t[h * s.distances()], u.data(), out + h * n * n, n);
    }
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    if (term.tensors.empty()) return;
    const generic::RelativeShape s = shape(nodes);
    const int64_t n = s.nodes();
    std::vector<T> dt(heads * s.distances()), du(s.scratch_size());
    for (int64_t h = 0; h < heads; ++h) {
      generic::relative_scores_gradient(s, dscores + h * n * n, n, &dt[h * s.distances()],
                                        du.data());
    }
    Row::table_gradient(term, heads, nodes, dt.data(), gradients);
  }
};

// visit(h, i - j, place in t)
template <class T, class Visitor>
void visit_distances(int heads, const NodeContext<T>& nodes, const Visitor& visit) {
  const int most = nodes.real_nodes - 1;
  for (int64_t h = 0, place = 0; h < heads; ++h) {
    for (int distance = -most; distance <= most; ++distance) visit(h, distance, place++);
  }
}

}  // namespace posattn

// FIRE (arXiv 2310.04418): S[i, j] of all heads = MLP(x), 1 -> 32 -> heads with ReLU, of the
// normalised distance
//   x = log(1 + |c| d) / (log(1 + |c| m_i) + 1e-6),  d = |i - j|,
//   m_i = max(the farthest node that i may attend to, |share| reach)
// with learned c and share; the reach is the length of training. 0 where a scratch node takes part.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int fire_hidden = 32;

// The weights, or their gradients.
template <class T>
struct FireWeights {
  template <class Source>
  FireWeights(const PositionTerm& term, const Source& source)
      : w1(source.tensor(term.tensors[0])),
        b1(source.tensor(term.tensors[1])),
        w2(source.tensor(term.tensors[2])),
        b2(source.tensor(term.tensors[3])),
        rate(source.tensor(term.tensors[4])),
        share(source.tensor(term.tensors[5])) {}
  T *w1, *b1, *w2, *b2, *rate, *share;
};

// What the distances of one row are divided by.
template <class T>
struct FireRow {
  FireRow(const PositionTerm& term, const FireWeights<const T>& w, const NodeContext<T>& nodes,
          int node)
      : farthest(nodes.spec.causal ? node : std::max(node, nodes.real_nodes - 1 - node)),
        c(std::abs(*w.rate)),
        least(std::abs(*w.share) * static_cast<T>(term.reach)),
        most(std::max(static_cast<T>(farthest), least)),
        below(std::log1p(c * most) + T(1e-6)) {}
  T normalised(int distance) const { return std::log1p(c * static_cast<T>(distance)) / below; }
  // visit(j) of the nodes at this distance.
  template <class Visitor>
  void visit(const NodeContext<T>& nodes, int node, int distance, const Visitor& visit) const {
    if (distance <= node) visit(node - distance);
    const bool later = distance > 0 && node + distance < nodes.real_nodes;
    if (later && !nodes.spec.causal) visit(node + distance);
  }

  int farthest;
  T c, least, most, below;
};

struct Fire {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    const auto of_map = [](std::string name, std::vector<int64_t> shape, int64_t in) {
      const bool maps = shape.size() > 1;
      return TensorInfo{.name = std::move(name),
                        .shape = std::move(shape),
                        .initial = Initial::fan_in_uniform,
                        .fan_in = in,
                        .maps = maps};
    };
    return {of_map(names::weight(names::fire_first), {fire_hidden, 1}, 1),
            of_map(names::bias(names::fire_first), {fire_hidden}, 1),
            of_map(names::weight(names::fire_last), {spec.heads, fire_hidden}, fire_hidden),
            of_map(names::bias(names::fire_last), {spec.heads}, fire_hidden),
            {.name = std::string(names::fire_rate),
             .shape = {1},
             .initial = Initial::constant,
             .value = 0.1},
            {.name = std::string(names::fire_share), .shape = {1}, .initial = Initial::one}};
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const FireWeights<const T> w(term, nodes);
    const int64_t n = nodes.count();
    std::fill_n(out, heads * n * n, T(0));
    for (int i = 0; i < nodes.real_nodes; ++i) {
      const FireRow<T> row(term, w, nodes, i);
      for (int distance = 0; distance <= row.farthest; ++distance) {
        const T x = row.normalised(distance);
        T hidden[fire_hidden];
        for (int u = 0; u < fire_hidden; ++u) hidden[u] = std::max(T(0), w.w1[u] * x + w.b1[u]);
        for (int64_t h = 0; h < heads; ++h) {
          T score = w.b2[h];
          for (int u = 0; u < fire_hidden; ++u) score += w.w2[h * fire_hidden + u] * hidden[u];
          row.visit(nodes, i, distance, [&](int64_t j) { out[(h * n + i) * n + j] = score; });
        }
      }
    }
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    const FireWeights<const T> w(term, nodes);
    const FireWeights<T> d(term, gradients);
    const int64_t n = nodes.count();
    for (int i = 0; i < nodes.real_nodes; ++i) {
      const FireRow<T> row(term, w, nodes, i);
      T dbelow = 0, dc = 0;
      for (int distance = 0; distance <= row.farthest; ++distance) {
        const T x = row.normalised(distance);
        T before[fire_hidden], dhidden[fire_hidden] = {};
        for (int u = 0; u < fire_hidden; ++u) before[u] = w.w1[u] * x + w.b1[u];
        for (int64_t h = 0; h < heads; ++h) {
          T ds = 0;
          row.visit(nodes, i, distance, [&](int64_t j) { ds += dscores[(h * n + i) * n + j]; });
          d.b2[h] += ds;
          for (int u = 0; u < fire_hidden; ++u) {
            d.w2[h * fire_hidden + u] += ds * std::max(T(0), before[u]);
            dhidden[u] += ds * w.w2[h * fire_hidden + u];
          }
        }
        T dx = 0;
        for (int u = 0; u < fire_hidden; ++u) {
          if (before[u] <= 0) continue;
          d.w1[u] += dhidden[u] * x;
          d.b1[u] += dhidden[u];
          dx += dhidden[u] * w.w1[u];
        }
        const T far = static_cast<T>(distance);
        dc += dx / row.below * far / (1 + row.c * far);
        dbelow -= dx / row.below * x;
      }
      const T slope = dbelow / (1 + row.c * row.most);  // of log(1 + c m)
      dc += slope * row.most;
      *d.rate += *w.rate < 0 ? -dc : dc;
      if (row.least <= static_cast<T>(row.farthest)) continue;
      const T dleast = slope * row.c * static_cast<T>(term.reach);
      *d.share += *w.share < 0 ? -dleast : dleast;
    }
  }
};

}  // namespace

constinit const PositionRow fire_row = position_row<Fire>(false);

}  // namespace posattn

// FIRE (arXiv 2310.04418): S[i, j] of all heads = MLP(x), 1 -> 32 -> heads with ReLU, of the
// normalised distance
//   x = log(1 + |c| d) / (log(1 + |c| m) + 1e-6),  d = |i - j|,
//   m = max(the farthest node that i may attend to, |share| reach)
// with learned c and share; the reach is the length of training. 0 where a scratch node takes part.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int fire_hidden = 32;

// Of the context, or of gradients.
template <class T, class Source>
std::vector<T*> fire_tensors(const PositionTerm& term, const Source& source) {
  std::vector<T*> tensors;
  for (const TensorId id : term.tensors) tensors.push_back(source.tensor(id));
  return tensors;
}

// What a pair of real nodes is to the MLP.
template <class T>
struct FirePair {
  FirePair(const PositionTerm& term, const NodeContext<T>& nodes,
           const std::vector<const T*>& tensors, int i, int j)
      : c(std::abs(*tensors[4])), least(std::abs(*tensors[5]) * static_cast<T>(term.reach)) {
    const int farthest = nodes.spec.causal ? i : std::max(i, nodes.real_nodes - 1 - i);
    learned = least > static_cast<T>(farthest);
    m = std::max(least, static_cast<T>(farthest));
    d = static_cast<T>(std::abs(i - j));
    below = std::log1p(c * m) + T(1e-6);
    x = std::log1p(c * d) / below;
    for (int u = 0; u < fire_hidden; ++u) {
      hidden[u] = std::max(T(0), tensors[0][u] * x + tensors[1][u]);
    }
  }
  T c, least, m, d, below, x, hidden[fire_hidden];
  bool learned;  // m is a share of the reach
};

template <class T, class Visitor>
void visit_real_pairs(const NodeContext<T>& nodes, const Visitor& visit) {
  for (int i = 0; i < nodes.real_nodes; ++i) {
    for (int j = 0; j < (nodes.spec.causal ? i + 1 : nodes.real_nodes); ++j) visit(i, j);
  }
}

struct Fire {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    std::vector<TensorInfo> tensors;
    const auto map = [&](std::string_view name, int64_t out, int64_t in) {
      const Initial initial = Initial::fan_in_uniform;
      tensors.push_back({.name = names::weight(name),
                         .shape = {out, in},
                         .initial = initial,
                         .fan_in = in,
                         .maps = true});
      tensors.push_back(
          {.name = names::bias(name), .shape = {out}, .initial = initial, .fan_in = in});
    };
    map(names::fire_first, fire_hidden, 1);
    map(names::fire_last, spec.heads, fire_hidden);
    tensors.push_back({.name = std::string(names::fire_rate),
                       .shape = {1},
                       .initial = Initial::constant,
                       .value = 0.1});
    tensors.push_back(
        {.name = std::string(names::fire_share), .shape = {1}, .initial = Initial::one});
    return tensors;
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const auto w = fire_tensors<const T>(term, nodes);
    const int64_t n = nodes.count();
    std::fill_n(out, heads * n * n, T(0));
    visit_real_pairs(nodes, [&](int i, int j) {
      const FirePair<T> pair(term, nodes, w, i, j);
      for (int64_t h = 0; h < heads; ++h) {
        T score = w[3][h];
        for (int u = 0; u < fire_hidden; ++u) score += w[2][h * fire_hidden + u] * pair.hidden[u];
        out[(h * n + i) * n + j] = score;
      }
    });
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    const auto w = fire_tensors<const T>(term, nodes);
    const auto dw = fire_tensors<T>(term, gradients);
    const int64_t n = nodes.count();
    visit_real_pairs(nodes, [&](int i, int j) {
      const FirePair<T> pair(term, nodes, w, i, j);
      T dhidden[fire_hidden] = {}, dx = 0;
      for (int64_t h = 0; h < heads; ++h) {
        const T ds = dscores[(h * n + i) * n + j];
        dw[3][h] += ds;
        for (int u = 0; u < fire_hidden; ++u) {
          dw[2][h * fire_hidden + u] += ds * pair.hidden[u];
          dhidden[u] += ds * w[2][h * fire_hidden + u];
        }
      }
      for (int u = 0; u < fire_hidden; ++u) {
        if (pair.hidden[u] <= 0) continue;
        dw[0][u] += dhidden[u] * pair.x;
        dw[1][u] += dhidden[u];
        dx += dhidden[u] * w[0][u];
      }
      const T above = dx / pair.below;                          // d log(1 + |c| d)
      const T slope = -above * pair.x / (1 + pair.c * pair.m);  // d (|c| m)
      const T dc = above * pair.d / (1 + pair.c * pair.d) + slope * pair.m;
      *dw[4] += *w[4] < 0 ? -dc : dc;
      const T dshare = pair.learned ? slope * pair.c * static_cast<T>(term.reach) : T(0);
      *dw[5] += *w[5] < 0 ? -dshare : dshare;
    });
  }
};

}  // namespace

constinit const PositionRow fire_row = position_row<Fire>(false);

}  // namespace posattn

// Kerple, the logarithmic form (arXiv 2205.09921): S_h[i, j] = -p log(1 + a |i - j|), p and a
// learned for each head and never below 0.01.
//   dp = -sum dS log(1 + a d),  da = -sum dS p d / (1 + a d)
// Below the bound a gradient passes only where a step would raise the number: the same as setting
// the number itself to the bound after every step.
#include <cmath>

#include "posattn/model/attention/by_distance.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

struct Kerple {
  static constexpr double least = 0.01;

  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    return {{.name = std::string(names::kerple_factor),
             .shape = {spec.heads},
             .initial = Initial::positive_uniform,
             .value = 2},
            {.name = std::string(names::kerple_rate),
             .shape = {spec.heads},
             .initial = Initial::positive_uniform,
             .value = 1}};
  }

  template <class T>
  static T above(T x) {
    return std::max(x, T(least));
  }

  template <class T>
  static void table(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* t) {
    const T *p = nodes.tensor(term.tensors[0]), *a = nodes.tensor(term.tensors[1]);
    visit_distances(heads, nodes, [&](int64_t h, int distance, int64_t place) {
      t[place] = -above(p[h]) * std::log1p(above(a[h]) * static_cast<T>(std::abs(distance)));
    });
  }

  template <class T>
  static void table_gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                             const T* dt, const ScoreGradients<T>& gradients) {
    const T *p = nodes.tensor(term.tensors[0]), *a = nodes.tensor(term.tensors[1]);
    std::vector<T> dp(heads), da(heads);
    visit_distances(heads, nodes, [&](int64_t h, int distance, int64_t place) {
      const T d = static_cast<T>(std::abs(distance)), rate = above(a[h]);
      dp[h] -= dt[place] * std::log1p(rate * d);
      da[h] -= dt[place] * above(p[h]) * d / (1 + rate * d);
    });
    for (int h = 0; h < heads; ++h) {
      if (p[h] >= T(least) || dp[h] < 0) gradients.tensor(term.tensors[0])[h] += dp[h];
      if (a[h] >= T(least) || da[h] < 0) gradients.tensor(term.tensors[1])[h] += da[h];
    }
  }
};

}  // namespace

constinit const PositionRow kerple_row = position_row<ByDistance<Kerple>>(false);

}  // namespace posattn

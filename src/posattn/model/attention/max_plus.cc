// Sums and products of the tropical semiring: o_i = max_j (S_ij + v_j), column by column, over the
// nodes that i attends to. The gradient goes to the first node j* of the largest sum:
//   dv_j* += do_i,  dS_ij* += do_i
//
// With tropical scores (tropical_scores.cc), no scores of positions and no biases, the network is
// homogeneous of degree 1. Queries, keys and values are linear in the state x, so S(c x) = c S(x)
// and v(c x) = c v(x) for c > 0, and max_j (c S_ij + c v_j) = c max_j (S_ij + v_j). Linear maps and
// ReLUs keep the degree, and f(c x) = c f(x) follows layer by layer. A table of scores of positions
// counts among the biases: f_b(c x) = c f_(b/c)(x) (bounds/bias_scaling.h).
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct MaxPlus {
  static constexpr bool rows_sum_to_one = false, random = false, keeps = false, scale_free = false;

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws& draws, T* attention,
                      T* kept, std::vector<T>& scratch) {
    sums_row.in<T>().weights(parts, draws, attention, kept, scratch);
  }
  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T* kept, T* dattention,
                       T* dquery_key) {
    sums_row.in<T>().gradient(parts, attention, kept, dattention, dquery_key);
  }

  template <class T>
  static void mix(const generic::HeadShape& values, const T* a, const T* v, T* o) {
    for (int64_t i = 0; i < values.nodes; ++i) {
      const T* s = a + i * values.nodes;
      T* y = o + i * values.stride;
      for (int64_t c = 0; c < values.size; ++c) y[c] = s[0] + v[c];
      for (int64_t j = 1; j < values.end(i); ++j) {
        const T* x = v + j * values.stride;
        for (int64_t c = 0; c < values.size; ++c) y[c] = s[j] + x[c] > y[c] ? s[j] + x[c] : y[c];
      }
    }
  }

  template <class T>
  static void mix_gradient(const generic::HeadShape& values, const T* a, const T* v, const T* d_o,
                           T* dv, bool accumulate, T* da) {
    const int64_t n = values.nodes, stride = values.stride;
    for (int64_t j = 0; j < n; ++j) std::fill_n(dv + j * stride, values.size, T(0));
    if (!accumulate) std::fill_n(da, n * n, T(0));
    for (int64_t i = 0; i < n; ++i) {
      const T* s = a + i * n;
      const int64_t end = values.end(i);
      for (int64_t c = 0; c < values.size; ++c) {
        int64_t best = 0;
        T largest = s[0] + v[c];
        for (int64_t j = 1; j < end; ++j) {
          const T sum = s[j] + v[j * stride + c];
          best = sum > largest ? j : best;
          largest = sum > largest ? sum : largest;
        }
        const T d = d_o[i * stride + c];
        dv[best * stride + c] += d;
        da[i * n + best] += d;
      }
    }
  }
};

constexpr WeightingRow max_plus() {
  WeightingRow row = weighting_row<MaxPlus>();
  row.adds_values = true;
  return row;
}

}  // namespace

constinit const WeightingRow max_plus_row = max_plus();

}  // namespace posattn

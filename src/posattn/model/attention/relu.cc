// ReLU attention (arXiv 2306.04637): A_ij = relu(S_ij) / m_i, m_i the nodes that node i attends to.
//   dS_ij = dA_ij / m_i where S_ij > 0, else 0
// Weights of a row may have any sum. With scores of degree 2 in x, o has degree 3, and L layers
// 3^L: such a model overflows outside its range.
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct Relu {
  static constexpr bool rows_sum_to_one = false, random = false, keeps = false, scale_free = false;

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T*,
                      std::vector<T>& scratch) {
    make_scores(parts, true, attention, scratch);
    const int64_t n = parts.keys.nodes;
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      T* a = attention + row * n;
      const int64_t end = parts.keys.end(row);
      const T share = 1 / static_cast<T>(end);
      for (int64_t j = 0; j < end; ++j) a[j] = a[j] < 0 ? T(0) : a[j] * share;
      std::fill(a + end, a + n, T(0));
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T*, T* dattention,
                       T* dquery_key) {
    const int64_t n = parts.keys.nodes;
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      const T* a = attention + row * n;
      T* d = dattention + row * n;
      const T share = 1 / static_cast<T>(parts.keys.end(row));
      for (int64_t j = 0; j < n; ++j) d[j] = a[j] > 0 ? d[j] * share : T(0);
    }
    scores_gradient(parts, dattention, dquery_key);
  }
};

}  // namespace

constinit const WeightingRow relu_row = weighting_row<Relu>();

}  // namespace posattn

// A = softmax(S), S_h = factor Q_h K_h^T + B_h: over nodes 0..i where causal.
//   dS = A o (dA - sum_j A dA),  dQ = factor dS K,  dK = factor dS^T Q,  dB = dS
#include <algorithm>

#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct Softmax {
  static constexpr bool rows_sum_to_one = true, random = false, keeps = false, scale_free = false;

  template <class T>
  static bool are_products(const ScoreParts<T>& parts) {
    return parts.query_key != nullptr && parts.data->template in<T>().scores == nullptr;
  }

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T*,
                      std::vector<T>& scratch) {
    const int64_t n = parts.keys.nodes, size = parts.keys.size;
    if (!are_products<T>(parts)) {
      make_scores(parts, true, attention, scratch);
      for (int64_t h = 0; parts.keys.causal && h < parts.heads; ++h) {
        generic::mask_causal(n, attention + h * n * n);
      }
      return generic::softmax_rows(parts.heads * n, n, attention);
    }
    for (int64_t h = 0; h < parts.heads; ++h) {
      const T* query = parts.query_key + h * 2 * size;
      generic::attention_matrix(parts.keys, query, query + size,
                                parts.positions == nullptr ? nullptr : parts.positions + h * n * n,
                                attention + h * n * n, scratch);
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T*, T* dattention,
                       T* dquery_key) {
    const int64_t n = parts.keys.nodes, size = parts.keys.size;
    if (!are_products<T>(parts)) {
      generic::softmax_rows_gradient(parts.heads * n, n, attention, dattention);
      return scores_gradient(parts, dattention, dquery_key);
    }
    for (int64_t h = 0; h < parts.heads; ++h) {
      const T* query = parts.query_key + h * 2 * size;
      T* dquery = dquery_key + h * 2 * size;
      generic::attention_matrix_gradient(parts.keys, query, query + size, attention + h * n * n,
                                         dattention + h * n * n, dquery, dquery + size);
    }
  }

  template <class T>
  static void row_weights(int64_t nodes, T* scores) {
    generic::softmax_rows(1, nodes, scores);
  }
};

}  // namespace

constinit const WeightingRow softmax_row = weighting_row<Softmax>();

}  // namespace posattn

// Sum heads: A = S, which nothing divides. A softmax takes means, so what it has learned of a sum
// is wrong by a factor at every other length. A head of scores by distance with S = 1 at i >= j and
// 0 elsewhere holds cumulative sums at every length.
//   dS = dA
// Of S, exp(S), relu(S), softplus(S) and sigmoid(S), trained on cumulative sums of 8 numbers, S
// itself had the smallest error at 8 nodes and at 128 (docs/neighbours.md). It alone is 0 at no
// cost, has a gradient everywhere and starts at 0, not at the sum over all nodes.
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct Sums {
  static constexpr bool rows_sum_to_one = false, random = false, keeps = false, scale_free = false;

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T*,
                      std::vector<T>& scratch) {
    make_scores(parts, true, attention, scratch);
    clear_unread(parts, attention);
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T*, const T*, T* dattention,
                       T* dquery_key) {
    clear_unread(parts, dattention);
    scores_gradient(parts, dattention, dquery_key);
  }

 private:
  template <class T>
  static void clear_unread(const ScoreParts<T>& parts, T* matrices) {
    const int64_t n = parts.keys.nodes;
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      std::fill(matrices + row * n + parts.keys.end(row), matrices + (row + 1) * n, T(0));
    }
  }
};

}  // namespace

constinit const WeightingRow sums_row = weighting_row<Sums>();

}  // namespace posattn

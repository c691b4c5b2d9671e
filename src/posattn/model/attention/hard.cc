// Hard retrieval (arXiv 2009.14658): node i reads one node. In training it is j with probability
// a_ij, a = softmax(S); in tests the j of the largest score.
//   o_i = v_j,  dv_j += do_i,  da_ij = do_i . v_j for all j, and dS from da as for a softmax: the
//   gradient goes straight through the draw.
#include <algorithm>

#include "posattn/base/random.h"
#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

// The first place where the running sum exceeds u; the last one with any weight if none does.
template <class T>
int64_t drawn(const T* a, int64_t nodes, T u) {
  T sum = 0;
  int64_t last = 0;
  for (int64_t j = 0; j < nodes; ++j) {
    if (a[j] > 0) last = j;
    sum += a[j];
    if (sum > u) return j;
  }
  return last;
}

struct Hard {
  static constexpr bool rows_sum_to_one = true, random = true, keeps = true, scale_free = true;

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws& draws, T* attention,
                      T* kept, std::vector<T>& scratch) {
    softmax_row.in<T>().weights(parts, draws, kept, nullptr, scratch);
    const int64_t n = parts.keys.nodes;
    std::fill_n(attention, parts.heads * n * n, T(0));
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      const T* a = kept + row * n;
      const int64_t read = draws.context.training ? drawn(a, n, T(draws.uniform(row)))
                                                  : std::max_element(a, a + n) - a;
      attention[row * n + read] = 1;
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T*, const T* kept, T* dattention,
                       T* dquery_key) {
    softmax_row.in<T>().gradient(parts, kept, nullptr, dattention, dquery_key);
  }

  template <class T>
  static void row_weights(int64_t nodes, T* scores) {
    softmax_row.in<T>().row_weights(nodes, scores);  // equal weights are equal to rounding
    const int64_t largest = std::max_element(scores, scores + nodes) - scores;
    std::fill_n(scores, nodes, T(0));
    scores[largest] = 1;
  }
};

}  // namespace

float AttentionDraws::uniform(int64_t row) const {
  const auto n = static_cast<int64_t>(index->size());
  const int64_t place = first + row / n * nodes + (*index)[row % n];
  return RandomStream(context.seed, Purpose::attention_draws, context.step,
                      static_cast<uint32_t>(place))
      .uniform();
}

constinit const WeightingRow hard_row = weighting_row<Hard>();

}  // namespace posattn

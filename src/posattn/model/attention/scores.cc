// Scores of the data and of positions as one matrix, for weightings that are no softmax.
//   S_h = factor Q_h K_h^T + B_h,  dQ = factor dS K,  dK = factor dS^T Q
#include <algorithm>

#include "posattn/model/attention/rows.h"

namespace posattn {

template <class T>
void make_scores(const ScoreParts<T>& parts, bool with_positions, T* scores,
                 std::vector<T>& scratch) {
  const int64_t n = parts.keys.nodes, size = parts.keys.size, square = n * n;
  const T* positions = with_positions ? parts.positions : nullptr;
  if (parts.query_key == nullptr) {
    if (positions == nullptr) std::fill_n(scores, parts.heads * square, T(0));
    if (positions != nullptr) std::copy_n(positions, parts.heads * square, scores);
    return;
  }
  const auto own_scores = parts.data->template in<T>().scores;
  for (int64_t h = 0; h < parts.heads; ++h) {
    const T* q = parts.query_key + h * 2 * size;
    const T* bias = positions == nullptr ? nullptr : positions + h * square;
    T* s = scores + h * square;
    if (own_scores == nullptr) {
      generic::head_scores(parts.keys, q, q + size, bias, s, scratch);
      continue;
    }
    if (bias == nullptr) std::fill_n(s, square, T(0));
    if (bias != nullptr) std::copy_n(bias, square, s);
    own_scores(parts.keys, q, q + size, s);
  }
}

template <class T>
void scores_gradient(const ScoreParts<T>& parts, T* dscores, T* dquery_key) {
  const int64_t n = parts.keys.nodes, size = parts.keys.size;
  const auto own = parts.data == nullptr ? nullptr : parts.data->template in<T>().scores_gradient;
  for (int64_t h = 0; parts.query_key != nullptr && h < parts.heads; ++h) {
    const T* q = parts.query_key + h * 2 * size;
    T* dq = dquery_key + h * 2 * size;
    T* ds = dscores + h * n * n;
    if (own == nullptr) {
      generic::head_scores_gradient(parts.keys, q, q + size, ds, dq, dq + size);
    } else {
      own(parts.keys, q, q + size, ds, dq, dq + size);
    }
  }
}

template void make_scores(const ScoreParts<float>&, bool, float*, std::vector<float>&);
template void make_scores(const ScoreParts<double>&, bool, double*, std::vector<double>&);
template void scores_gradient(const ScoreParts<float>&, float*, float*);
template void scores_gradient(const ScoreParts<double>&, double*, double*);

}  // namespace posattn

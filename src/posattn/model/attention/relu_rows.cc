// ReLU attention that does not see the scale of its scores: S of the data, B of positions,
//   w = exp(B - max_j B),  P = w o relu(S),  z_i = sum_j P_ij,  A = P / z, and 0 where z = 0
//   t = dA - sum_j A dA,  dS = t o w / z where S > 0, else 0,  dB = t o A
// A(c S) = A(S) for c > 0. A factor of a row of w does not change A, so w is softmax(B) here.
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct ReluRows {
  static constexpr bool rows_sum_to_one = false, random = false, keeps = true, scale_free = true;

  // kept: w / z where a node is read, else 0.
  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T* kept,
                      std::vector<T>& scratch) {
    ScoreParts<T> positions = parts;
    positions.query_key = nullptr;
    softmax_row.in<T>().weights(positions, {}, kept, nullptr, scratch);
    make_scores(parts, false, attention, scratch);
    const int64_t n = parts.keys.nodes;
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      T *a = attention + row * n, *w = kept + row * n;
      const int64_t end = parts.keys.end(row);
      T z = 0;
      for (int64_t j = 0; j < end; ++j) {
        w[j] = a[j] <= 0 ? T(0) : w[j];
        a[j] = a[j] <= 0 ? T(0) : w[j] * a[j];
        z += a[j];
      }
      const T inverse = z > 0 ? 1 / z : T(0);
      for (int64_t j = 0; j < end; ++j) {
        w[j] *= inverse;
        a[j] *= inverse;
      }
      std::fill(a + end, a + n, T(0));
      std::fill(w + end, w + n, T(0));
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T* kept, T* dattention,
                       T* dquery_key) {
    const int64_t n = parts.keys.nodes;
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      const T *a = attention + row * n, *w = kept + row * n;
      T *d = dattention + row * n, along = 0;
      const int64_t end = parts.keys.end(row);
      for (int64_t j = 0; j < end; ++j) along += a[j] * d[j];
      for (int64_t j = 0; j < end; ++j) d[j] = (d[j] - along) * w[j];
    }
    scores_gradient(parts, dattention, dquery_key);
    if (parts.positions == nullptr) return;
    for (int64_t i = 0; i < parts.heads * n * n; ++i) {  // dB = dS S, S = A z / w
      dattention[i] = kept[i] > 0 ? dattention[i] * (attention[i] / kept[i]) : T(0);
    }
  }
};

constexpr WeightingRow relu_rows() {
  WeightingRow row = weighting_row<ReluRows>();
  row.positions_are_factors = true;
  return row;
}

}  // namespace

constinit const WeightingRow relu_rows_row = relu_rows();

}  // namespace posattn

// Scores of a spiking network (arXiv 2501.16745): how many spikes of a query and a key are equal,
// which is an XNOR and a count.
//   S_ij = sum_c q_ic k_jc + (1 - q_ic)(1 - k_jc)
//   dq_i = sum_j dS_ij (2 k_j - 1),  dk_j = sum_i dS_ij (2 q_i - 1)
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

// Eight columns at a time.
template <class T>
T agreements(int64_t size, const T* q, const T* k) {
  constexpr int lanes = 8;
  T sums[lanes] = {};
  const auto agree = [](T a, T b) { return a * b + (1 - a) * (1 - b); };
  int64_t c = 0;
  for (; c + lanes <= size; c += lanes) {
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += agree(q[c + lane], k[c + lane]);
  }
  for (; c < size; ++c) sums[0] += agree(q[c], k[c]);
  T total = 0;
  for (const T sum : sums) total += sum;
  return total;
}

template <class T>
void scores_of(const generic::HeadShape& keys, const T* q, const T* k, T* scores) {
  for (int64_t i = 0; i < keys.nodes; ++i, q += keys.stride) {
    for (int64_t j = 0; j < keys.end(i); ++j) {
      scores[i * keys.nodes + j] += agreements(keys.size, q, k + j * keys.stride);
    }
  }
}

template <class T>
void gradient_of(const generic::HeadShape& keys, const T* q, const T* k, const T* dscores, T* dq,
                 T* dk) {
  for (int64_t i = 0; i < keys.nodes; ++i) {
    std::fill_n(dq + i * keys.stride, keys.size, T(0));
    std::fill_n(dk + i * keys.stride, keys.size, T(0));
  }
  for (int64_t i = 0; i < keys.nodes; ++i, q += keys.stride, dq += keys.stride) {
    for (int64_t j = 0; j < keys.end(i); ++j) {
      const T d = dscores[i * keys.nodes + j];
      const T* key = k + j * keys.stride;
      T* dkey = dk + j * keys.stride;
      for (int64_t c = 0; c < keys.size; ++c) {
        dq[c] += d * (2 * key[c] - 1);
        dkey[c] += d * (2 * q[c] - 1);
      }
    }
  }
}

constexpr DataRow agreement_scores() {
  DataRow row;
  row.in_float.scores = scores_of<float>;
  row.in_float.scores_gradient = gradient_of<float>;
  row.in_double.scores = scores_of<double>;
  row.in_double.scores_gradient = gradient_of<double>;
  row.factor = [](int64_t) { return 1.0; };
  return row;
}

}  // namespace

constinit const DataRow agreements_row = agreement_scores();

}  // namespace posattn

// Minus the tropical distance of a query and a key (arXiv 2505.17190), which adding one number to
// all coordinates does not change:
//   S_ij = -(max_c u_c - min_c u_c),  u = q_i - k_j
// The gradient goes to the first coordinates a of the maximum and b of the minimum:
//   dq_i[a] -= dS_ij, dk_j[a] += dS_ij, dq_i[b] += dS_ij, dk_j[b] -= dS_ij
#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

// Where u = q - k is largest and smallest.
struct Ends {
  int64_t largest = 0, smallest = 0;
};
template <class T>
Ends ends_of(int64_t size, const T* q, const T* k) {
  Ends at;
  T largest = q[0] - k[0], smallest = largest;
  for (int64_t c = 1; c < size; ++c) {
    const T u = q[c] - k[c];
    if (u > largest) largest = u, at.largest = c;
    if (u < smallest) smallest = u, at.smallest = c;
  }
  return at;
}

// max u - min u, eight coordinates at a time.
template <class T>
T distance(int64_t size, const T* q, const T* k) {
  constexpr int lanes = 8;
  T high[lanes], low[lanes];
  std::fill_n(high, lanes, q[0] - k[0]);
  std::fill_n(low, lanes, q[0] - k[0]);
  const auto see = [&](int lane, T u) {
    high[lane] = u > high[lane] ? u : high[lane];
    low[lane] = u < low[lane] ? u : low[lane];
  };
  int64_t c = 0;
  for (; c + lanes <= size; c += lanes) {
    for (int lane = 0; lane < lanes; ++lane) see(lane, q[c + lane] - k[c + lane]);
  }
  for (; c < size; ++c) see(0, q[c] - k[c]);
  return *std::max_element(high, high + lanes) - *std::min_element(low, low + lanes);
}

template <class T>
void tropical_scores(const generic::HeadShape& keys, const T* q, const T* k, T* scores) {
  for (int64_t i = 0; i < keys.nodes; ++i, q += keys.stride) {
    for (int64_t j = 0; j < keys.end(i); ++j) {
      scores[i * keys.nodes + j] -= distance(keys.size, q, k + j * keys.stride);
    }
  }
}

template <class T>
void tropical_gradient(const generic::HeadShape& keys, const T* q, const T* k, const T* dscores,
                       T* dq, T* dk) {
  for (int64_t i = 0; i < keys.nodes; ++i) {
    std::fill_n(dq + i * keys.stride, keys.size, T(0));
    std::fill_n(dk + i * keys.stride, keys.size, T(0));
  }
  for (int64_t i = 0; i < keys.nodes; ++i, q += keys.stride, dq += keys.stride) {
    for (int64_t j = 0; j < keys.end(i); ++j) {
      const auto [a, b] = ends_of(keys.size, q, k + j * keys.stride);
      const T d = dscores[i * keys.nodes + j];
      T* dkey = dk + j * keys.stride;
      dq[a] -= d, dkey[a] += d;
      dq[b] += d, dkey[b] -= d;
    }
  }
}

constexpr DataRow tropical() {
  DataRow row;
  row.in_float.scores = tropical_scores<float>;
  row.in_float.scores_gradient = tropical_gradient<float>;
  row.in_double.scores = tropical_scores<double>;
  row.in_double.scores_gradient = tropical_gradient<double>;
  row.factor = [](int64_t) { return 1.0; };
  row.degree = 1;
  return row;
}

}  // namespace

constinit const DataRow tropical_row = tropical();

}  // namespace posattn

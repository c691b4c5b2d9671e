// Linear attention (arXiv 2006.16236): with features phi(x) = elu(x) + 1, above 0, number by
// number,
//   P_ij = phi(q_i) . phi(k_j),  A_ij = P_ij / z_i,  z_i = sum_j P_ij
//   dP_ij = (dA_ij - sum_j A_ij dA_ij) / z_i,  dphi(q_i) = sum_j dP_ij phi(k_j),
//   dphi(k_j) = sum_i dP_ij phi(q_i),  dx = dphi phi'(x), phi'(x) = 1 above 0, else phi(x) = exp(x)
// A causal model needs of earlier nodes the sums of phi(k_j) v_j^T and of phi(k_j) alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/model/attention/memory.h"
#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

// Of queries and keys by turns, as they lie: [nodes, heads, 2 d_k].
template <class T>
std::vector<T> features_of(int64_t count, const T* x) {
  std::vector<T> features(x, x + count);
  for (T& f : features) f = f > 0 ? f + 1 : std::exp(f);
  return features;
}

// S_h += phi(k) v^T and z_h += phi(k); o_h = phi(q)^T S_h / (phi(q) . z_h).
template <class T>
class RunningSums final : public NodeMemory<T> {
 public:
  explicit RunningSums(const MemoryShape<T>& shape)
      : shape_(shape),
        products_(shape.heads * shape.key_size * shape.head_size),
        features_(shape.heads * shape.key_size) {}

  void read(const NewNodes<T>& nodes) override {
    const int64_t size = shape_.key_size, columns = shape_.head_size;
    const std::vector<T> made = features_of(nodes.count * shape_.heads * 2 * size, nodes.query_key);
    for (int64_t i = 0; i < nodes.count * shape_.heads; ++i) {
      const T *q = &made[i * 2 * size], *k = q + size, *v = nodes.values + i * columns;
      T *z = &features_[i % shape_.heads * size], *mixed = nodes.mixed + i * columns, sum = 0;
      T* products = &products_[i % shape_.heads * size * columns];
      std::fill_n(mixed, columns, T(0));
      for (int64_t f = 0; f < size; ++f, products += columns) {
        sum += q[f] * (z[f] += k[f]);
        for (int64_t c = 0; c < columns; ++c) mixed[c] += q[f] * (products[c] += k[f] * v[c]);
      }
      for (int64_t c = 0; c < columns; ++c) mixed[c] = sum > 0 ? mixed[c] / sum : T(0);
    }
  }

 private:
  MemoryShape<T> shape_;
  std::vector<T> products_, features_;  // [heads, d_k, d_v], [heads, d_k]
};

struct Linear {
  static constexpr bool rows_sum_to_one = true, random = false, keeps = true, scale_free = false;

  static generic::HeadShape products(generic::HeadShape keys) {
    keys.factor = 1;
    return keys;
  }

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T* kept,
                      std::vector<T>& scratch) {
    const int64_t n = parts.keys.nodes, size = parts.keys.size;
    const std::vector<T> made = features_of(n * parts.keys.stride, parts.query_key);
    for (int64_t h = 0; h < parts.heads; ++h) {
      const T* q = &made[h * 2 * size];
      generic::head_scores<T>(products(parts.keys), q, q + size, nullptr, kept + h * n * n,
                              scratch);
    }
    std::fill_n(attention, parts.heads * n * n, T(0));
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      const T *p = kept + row * n, *end = p + (parts.keys.causal ? row % n + 1 : n);
      const T z = std::accumulate(p, end, T(0));
      std::transform(p, end, attention + row * n, [z](T x) { return z > 0 ? x / z : T(0); });
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T* kept, T* dattention,
                       T* dquery_key) {
    const int64_t n = parts.keys.nodes, size = parts.keys.size, count = n * parts.keys.stride;
    const std::vector<T> made = features_of(count, parts.query_key);
    for (int64_t row = 0; row < parts.heads * n; ++row) {
      const int64_t first = row * n, end = parts.keys.causal ? row % n + 1 : n;
      const T z = std::accumulate(kept + first, kept + first + end, T(0));
      T *d = dattention + first, along = std::inner_product(d, d + end, attention + first, T(0));
      std::for_each(d, d + end, [&](T& x) { x = z > 0 ? (x - along) / z : T(0); });
    }
    for (int64_t h = 0; h < parts.heads; ++h) {
      const T* q = &made[h * 2 * size];
      T* dq = dquery_key + h * 2 * size;
      generic::head_scores_gradient(products(parts.keys), q, q + size, dattention + h * n * n, dq,
                                    dq + size);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (parts.query_key[i] <= 0) dquery_key[i] *= made[i];
    }
  }

  template <class T>
  static std::unique_ptr<NodeMemory<T>> memory(const MemoryShape<T>& shape) {
    if (shape.window > 0) return nullptr;  // sums do not forget
    return std::make_unique<RunningSums<T>>(shape);
  }
};

}  // namespace

constinit const WeightingRow linear_row = weighting_row<Linear>();

}  // namespace posattn

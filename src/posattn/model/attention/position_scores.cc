// Scores from queries and keys that are made of P: S_h = Q_h K_h^T / sqrt(d_k).
#include <cmath>

#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

template <class T>
void rotate(const PositionTerm& term, int heads, const NodeContext<T>& nodes, int sign,
            std::vector<T>& query_key) {
  if (!term.rope) return;
  generic::rotate<T>(nodes.count(), 2 * heads, term.key_size, nodes.place, sign, query_key.data());
}

template <class T>
std::vector<T> query_key_of_positions(const PositionTerm& term, int heads,
                                      const NodeContext<T>& nodes) {
  std::vector<T> query_key(int64_t{1} * nodes.count() * term.query_key->out);
  nodes.maps.forward(*term.query_key, nodes.count(), nodes.positions.data(), query_key.data());
  rotate(term, heads, nodes, 1, query_key);
  return query_key;
}

struct QueryKey {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool beside_data) {
    const std::string name(beside_data ? names::bias_query_key : names::query_key);
    const int64_t out = int64_t{2} * spec.bias_key_size() * spec.heads;
    return {{.name = names::weight(name),
             .shape = {out, spec.encoding_size},
             .initial = Initial::xavier_uniform,
             .fan_in = spec.encoding_size,
             .maps = true},
            {.name = names::bias(name), .shape = {out}}};
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const std::vector<T> query_key = query_key_of_positions(term, heads, nodes);
    const int64_t n = nodes.count(), size = term.key_size, stride = 2 * heads * size;
    const T scale = 1 / std::sqrt(T(size));
    for (int h = 0; h < heads; ++h) {
      const T* query = query_key.data() + h * 2 * size;
      generic::product(false, true, n, n, size, scale, query, stride, query + size, stride, false,
                       out + h * n * n, n);
    }
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    const std::vector<T> query_key = query_key_of_positions(term, heads, nodes);
    std::vector<T> dquery_key(query_key.size());
    const int64_t n = nodes.count(), size = term.key_size, stride = 2 * heads * size;
    const T scale = 1 / std::sqrt(T(size));
    for (int h = 0; h < heads; ++h) {
      const T *query = query_key.data() + h * 2 * size, *key = query + size;
      T *dquery = dquery_key.data() + h * 2 * size, *dkey = dquery + size;
      const T* ds = dscores + h * n * n;
      generic::product(false, false, n, size, n, scale, ds, n, key, stride, false, dquery, stride);
      generic::product(true, false, n, size, n, scale, ds, n, query, stride, false, dkey, stride);
    }
    rotate(term, heads, nodes, -1, dquery_key);
    nodes.maps.backward(*term.query_key, n, nodes.positions.data(), dquery_key.data(),
                        gradients.parameters.values().data(), true, gradients.positions);
  }
};

}  // namespace

constinit const PositionRow query_key_row = position_row<QueryKey>(true);

}  // namespace posattn

// Row i of A_h has its mass on the places that node i reads, and the rest on the last node, which
// is a scratch node.
#include <algorithm>

#include "posattn/model/attention/rows.h"

namespace posattn {

template <class T>
void routed_attention_matrix(const RouteTerm& term, int heads, const NodeContext<T>& nodes,
                             T* out) {
  const int places = nodes.spec.route_places, n = nodes.count();
  const T* routes = nodes.tensor(term.routes);
  const T* weights = term.weights == no_tensor ? nullptr : nodes.tensor(term.weights);
  std::fill_n(out, int64_t{1} * heads * n * n, T(0));
  for (int row = 0; row < heads * n; ++row) {
    T* a = out + int64_t{1} * row * n;
    T rest = 1;
    for (int k = 0; k < places; ++k) {
      const int64_t at = int64_t{1} * row * places + k;
      const T mass = weights ? weights[at] : T(1);
      a[static_cast<int>(routes[at])] += mass;
      rest -= mass;
    }
    a[n - 1] += std::max(T(0), rest);
  }
}

template void routed_attention_matrix(const RouteTerm&, int, const NodeContext<float>&, float*);
template void routed_attention_matrix(const RouteTerm&, int, const NodeContext<double>&, double*);

}  // namespace posattn

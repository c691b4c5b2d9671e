// A learned score for every pair of nodes: S_h is a tensor.
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

// Calls pair(place among the scores of the active nodes, place in the tensor).
template <class T, class Pair>
void visit_pairs(int heads, const NodeContext<T>& nodes, const Pair& pair) {
  const int64_t n = nodes.count(), all = nodes.spec.nodes();
  for (int h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        pair((h * n + i) * n + j, (h * all + nodes.index[i]) * all + nodes.index[j]);
      }
    }
  }
}

struct Direct {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    return {{.name = std::string(names::scores),
             .shape = {spec.heads, spec.nodes(), spec.nodes()},
             .initial = Initial::xavier_uniform,
             .fan_in = spec.nodes()}};
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const T* table = nodes.tensor(term.tensors[0]);
    visit_pairs(heads, nodes, [&](int64_t active, int64_t stored) { out[active] = table[stored]; });
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const T* dscores, const ScoreGradients<T>& gradients) {
    T* dtable = gradients.tensor(term.tensors[0]);
    visit_pairs(heads, nodes,
                [&](int64_t active, int64_t stored) { dtable[stored] += dscores[active]; });
  }
};

}  // namespace

constinit const PositionRow direct_row = position_row<Direct>(false);

}  // namespace posattn

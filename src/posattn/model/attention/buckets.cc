// Relative buckets of T5 (arXiv 1910.10683): a learned score for each of 32 buckets of distances.
// Half of a direction's buckets hold one distance each, the others ranges that grow by a factor up
// to distance 128. Where nodes attend to later ones, half of the buckets are theirs.
#include <cmath>

#include "posattn/model/attention/by_distance.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

struct Buckets {
  static constexpr int count = 32, farthest = 128;

  static int bucket_of(int distance, bool causal) {
    const int mine = causal ? count : count / 2, exact = mine / 2;
    const int later = !causal && distance < 0 ? mine : 0, far = std::abs(distance);
    if (far < exact) return later + far;
    // Whole numbers at the ends of ranges, whatever the logarithms are rounded to.
    const double share = std::log(far / static_cast<double>(exact)) /
                         std::log(farthest / static_cast<double>(exact));
    return later + std::min(mine - 1, exact + static_cast<int>(share * (mine - exact) + 1e-9));
  }

  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    return {{.name = std::string(names::buckets), .shape = {spec.heads, count}}};
  }

  template <class T>
  static void table(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* t) {
    const T* scores = nodes.tensor(term.tensors[0]);
    visit_distances(heads, nodes, [&](int64_t h, int distance, int64_t place) {
      t[place] = scores[h * count + bucket_of(distance, nodes.spec.causal)];
    });
  }

  template <class T>
  static void table_gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                             const T* dt, const ScoreGradients<T>& gradients) {
    T* dscores = gradients.tensor(term.tensors[0]);
    visit_distances(heads, nodes, [&](int64_t h, int distance, int64_t place) {
      dscores[h * count + bucket_of(distance, nodes.spec.causal)] += dt[place];
    });
  }
};

}  // namespace

constinit const PositionRow buckets_row = position_row<ByDistance<Buckets>>(false);

}  // namespace posattn

// ALiBi (arXiv 2108.12409): S_h[i, j] = -m_h |i - j| with fixed slopes m_h.
#include <bit>
#include <cmath>

#include "posattn/model/attention/by_distance.h"

namespace posattn {
namespace {

// 2^(-8 (h + 1) / H) where H is a power of two; else those of the next lower power, then every
// second one of the next higher power.
double alibi_slope(int64_t head, int heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<unsigned>(heads)));
  const double step = 8.0 / static_cast<double>(power);
  const auto place =
      static_cast<double>(head < power ? head + 1 : head - power) + (head < power ? 0.0 : 0.5);
  return std::exp2(-step * place);
}

struct Alibi {
  static std::vector<TensorInfo> tensors(const ModelSpec&, bool) { return {}; }

  template <class T>
  static void table(const PositionTerm&, int heads, const NodeContext<T>& nodes, T* t) {
    visit_distances(heads, nodes, [&](int64_t h, int distance, int64_t place) {
      t[place] = static_cast<T>(-alibi_slope(h, heads) * std::abs(distance));
    });
  }
  template <class T>
  static void table_gradient(const PositionTerm&, int, const NodeContext<T>&, const T*,
                             const ScoreGradients<T>&) {}
};

}  // namespace

constinit const PositionRow alibi_row = position_row<ByDistance<Alibi>>(false);

}  // namespace posattn

// A window: S[i, j] = 0 where |i - j| < reach, and minus infinity elsewhere. Scratch nodes are in
// every window.
#include <cstdlib>
#include <limits>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

struct Window {
  static std::vector<TensorInfo> tensors(const ModelSpec&, bool) { return {}; }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes, T* out) {
    const int n = nodes.count(), real = nodes.real_nodes;
    for (int row = 0; row < heads * n; ++row) {
      for (int i = row % n, j = 0; j < n; ++j) {
        const bool far = i < real && j < real && std::abs(i - j) >= term.reach;
        *out++ = far ? -std::numeric_limits<T>::infinity() : T(0);
      }
    }
  }

  template <class T>
  static void gradient(const PositionTerm&, int, const NodeContext<T>&, const T*,
                       const ScoreGradients<T>&) {}
};

constexpr PositionRow window() {
  PositionRow row = position_row<Window>(false);
  row.window = true;
  return row;
}

}  // namespace

constinit const PositionRow window_row = window();

}  // namespace posattn

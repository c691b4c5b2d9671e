// Fixed whole numbers by distance, as spiking networks have them (arXiv 2501.16745). Scratch nodes
// have 0.
//   gray:  b - (bits in which G(i) and G(j) differ), G(i) = i XOR (i >> 1), of b = 10 bits, or as
//          many as the model's nodes need. Appending G(i) to the bits of q_i and of k_i adds just
//          this to their agreements.
//   log:   ceil(log2((n - 1) / (|i - j| + 1))) of n real nodes, at least 0
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

int gray_score(const ModelSpec& spec, int, int i, int j) {
  const auto code = [](int x) { return static_cast<unsigned>(x ^ (x >> 1)); };
  const int needed = std::bit_width(static_cast<unsigned>(spec.real_nodes - 1));
  return std::max(10, needed) - std::popcount(code(i) ^ code(j));
}

// The smallest r >= 0 with (|i - j| + 1) 2^r >= n - 1.
int log_score(const ModelSpec&, int n, int i, int j) {
  int r = 0;
  while ((int64_t{std::abs(i - j)} + 1) << r < n - 1) ++r;
  return r;
}

template <int (*score)(const ModelSpec&, int n, int i, int j)>
struct Integers {
  static std::vector<TensorInfo> tensors(const ModelSpec&, bool) { return {}; }

  template <class T>
  static void scores(const PositionTerm&, int heads, const NodeContext<T>& nodes, T* out) {
    const int n = nodes.count(), real = nodes.real_nodes;
    std::fill_n(out, int64_t{1} * heads * n * n, T(0));
    for (int row = 0; row < heads * n; ++row) {
      for (int j = 0; j < real && row % n < real; ++j) {
        out[int64_t{1} * row * n + j] = static_cast<T>(score(nodes.spec, real, row % n, j));
      }
    }
  }

  template <class T>
  static void gradient(const PositionTerm&, int, const NodeContext<T>&, const T*,
                       const ScoreGradients<T>&) {}
};

}  // namespace

constinit const PositionRow gray_row = position_row<Integers<gray_score>>(false),
                            log_row = position_row<Integers<log_score>>(false);

}  // namespace posattn

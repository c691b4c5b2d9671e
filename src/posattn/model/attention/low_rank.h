// Nystrom attention with m landmarks (low_rank.cc): what its row and its memory share.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "posattn/kernels/generic/product.h"
#include "posattn/model/attention/memory.h"

namespace posattn {

template <class T>
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<T> numbers = std::vector<T>(rows * columns);  // row by row
};

enum class Transposed { none, left, right };

// c += factor A B, one of the two transposed.
template <class T>
void add_product(double factor, const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& c,
                 Transposed which = Transposed::none) {
  const bool left = which == Transposed::left;
  generic::product(left, which == Transposed::right, c.rows, c.columns, left ? a.rows : a.columns,
                   static_cast<T>(factor), a.numbers.data(), a.columns, b.numbers.data(), b.columns,
                   true, c.numbers.data(), c.columns);
}
template <class T>
Matrix<T> product_of(double factor, const Matrix<T>& a, const Matrix<T>& b,
                     Transposed which = Transposed::none) {
  Matrix<T> c{which == Transposed::left ? a.columns : a.rows,
              which == Transposed::right ? b.rows : b.columns};
  add_product(factor, a, b, c, which);
  return c;
}

// Landmark s is the mean of consecutive nodes, from the first to before the last of the pair. Where
// m does not divide the nodes, the first landmarks have one node more.
inline std::pair<int64_t, int64_t> landmark_nodes(int64_t nodes, int64_t m, int64_t s) {
  const int64_t size = nodes / m, more = nodes % m;
  const int64_t first = s * size + std::min(s, more);
  return {first, first + size + (s < more ? 1 : 0)};
}

// Z of a square matrix G whose rows sum to one: six iterations of Newton and Schulz towards its
// inverse. In double for both precisions, as the iterations enlarge small differences.
//   Z_0 = G^T / (largest column sum),  P = G Z,  Z <- Z (13 I - P (15 I - P (7 I - P))) / 4
class NewtonInverse {
 public:
  explicit NewtonInverse(Matrix<double> g);
  std::span<const double> value() const;             // Z
  Matrix<double> gradient(Matrix<double> dz) const;  // dG from dZ

 private:
  int64_t m_;
  Matrix<double> g_;
  std::vector<double> numbers_;  // of all iterations
};

// Attention of the newest node over the last `window` nodes.
template <class T>
std::unique_ptr<NodeMemory<T>> continual_low_rank(const MemoryShape<T>& shape);

}  // namespace posattn

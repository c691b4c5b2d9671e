// Attention of a low numerical rank by its factors: A = C Q, Q [r, n] with orthonormal rows and
// C [n, r], so that A x = C (Q x) costs 2 n r instead of n^2 multiply-adds a column. The matrix is
// seen some rows at a time and never held. Every row is checked: with R = A - C Q
//   |A x - C Q x| <= max_i (sum_j |R_ij|) max |x|
#pragma once

#include <functional>
#include <memory>

#include "posattn/model/tiles/mixing.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class FactoredMixing : public Mixing {
 public:
  // Writes rows first, first + step, first + 2 step, ... of A, `count` of them, `stride` apart.
  using Rows = std::function<void(int64_t first, int64_t step, int64_t count, float* rows)>;

  // The greatest rank that is worth its factors.
  static int64_t most_rank(int64_t n);

  // Null as soon as the rank is greater.
  static std::unique_ptr<FactoredMixing> make(int64_t n, int64_t stride, const Rows& rows);

  int64_t rank() const { return rank_; }
  void mix(int64_t width, const float* x, int64_t x_stride, float* y,
           int64_t y_stride) const override;

 private:
  FactoredMixing(int64_t n, int64_t rank) : n_(n), rank_(rank), q_(rank * n), c_(n * rank) {}

  int64_t n_, rank_;
  Buffer<float> q_, c_;
};

}  // namespace posattn::engine

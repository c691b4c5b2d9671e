// Attention that does not depend on the data, applied without its matrix, for inference over many
// nodes: where scores depend on distances by Fourier transforms, where the matrix has a low rank by
// its factors. Both are as exact as rounding to float: they are chosen only where their bound on |y
// - A x| is below `mixing_tolerance` max |x|.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "posattn/kernels/cpu/fourier.h"
#include "posattn/kernels/generic/relative.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class Mixing {
 public:
  virtual ~Mixing() = default;

  // y [n, width] = A x of one head.
  virtual void mix(int64_t width, const float* x, int64_t x_stride, float* y,
                   int64_t y_stride) const = 0;
};

// Rows of A sum to one, so this is 16 units in the last place of the largest x: less than what the
// float sums over n >= 256 nodes may round.
constexpr double mixing_tolerance = 0x1p-20;

// Attention of a low numerical rank by its factors: A = C Q, Q [r, n] with orthonormal rows and
// C [n, r], so that A x = C (Q x) costs 2 n r instead of n^2 multiply-adds a column. The matrix is
// seen some rows at a time and never held. Every row is checked: with R = A - C Q
//   |A x - C Q x| <= max_i (sum_j |R_ij|) max |x|
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

// Attention by distance without its matrix. Before it is normalised, the part between real nodes is
// Toeplitz, e(i - j) = exp(t[i - j]): with z_i the sum of row i,
//   y_i = (sum_j e(i - j) x_j + sum_s e_s x_s) / z_i       s: scratch nodes
// is one convolution; scratch nodes attend to all real nodes alike, which is one sum. In double.
class RelativeMixing : public Mixing {
 public:
  // Whether that needs less arithmetic than the product with the matrix.
  static bool pays(const generic::RelativeShape& shape, int64_t width);

  // t and u are the scores of one head (kernels/generic/relative.h). Null where a row's sum is so
  // small beside the largest score that the convolution's error, which all rows share, could show.
  static std::unique_ptr<RelativeMixing> make(const generic::RelativeShape& shape, const float* t,
                                              const float* u);

  void mix(int64_t width, const float* x, int64_t x_stride, float* y,
           int64_t y_stride) const override;

 private:
  RelativeMixing(const generic::RelativeShape& shape, const std::vector<double>& e);
  void mix_columns(int64_t width, const float* x, int64_t x_stride, float* y, int64_t y_stride,
                   double* work) const;

  generic::RelativeShape shape_;
  ToeplitzProduct toeplitz_;
  std::vector<double> scratch_weights_;  // [scratch]: e_s
  std::vector<double> inverse_sums_;     // [real]: 1 / z_i
  std::vector<double> of_scratch_;  // [scratch, 1 + scratch]: weight of any real node, of others
};

}  // namespace posattn::engine

// Attention by distance without its matrix. Before it is normalised, the part between real nodes is
// Toeplitz, e(i - j) = exp(t[i - j]): with z_i the sum of row i,
//   y_i = (sum_j e(i - j) x_j + sum_s e_s x_s) / z_i       s: scratch nodes
// is one convolution; scratch nodes attend to all real nodes alike, which is one sum. In double.
#pragma once

#include <memory>
#include <vector>

#include "posattn/kernels/cpu/fourier.h"
#include "posattn/kernels/generic/relative.h"
#include "posattn/model/engine/mixing.h"

namespace posattn::engine {

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

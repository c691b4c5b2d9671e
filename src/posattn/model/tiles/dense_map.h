// A linear map y = x W^T + b as the stages use it: the transposed weight once a step for forward,
// the weight itself for dx, and a transposed accumulator for dW.
#pragma once

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class DenseMap {
 public:
  DenseMap() = default;
  // Only the first `columns` of the weight's inputs (0: all of them).
  explicit DenseMap(const LinearMap& map, int64_t columns = 0);

  void prepare(const float* weights);
  int64_t in() const { return in_; }
  int64_t out() const { return map_.out; }

  // y = x W^T + b, with ReLU where the store says so; Store::add leaves the bias to the caller.
  void forward(int64_t rows, const float* x, int64_t x_stride, float* y, int64_t y_stride,
               Store store) const;
  // dx = or += dy W
  void input_gradient(int64_t rows, const float* dy, int64_t dy_stride, float* dx,
                      int64_t dx_stride, Store store) const;
  // Accumulators: [in, padded out] for the weight, then [padded out] for the bias.
  int64_t gradient_size() const { return (in_ + 1) * padded(map_.out); }
  float* bias_gradient(float* gradient) const { return gradient + in_ * padded(map_.out); }
  void weight_gradient(int64_t rows, const float* x, int64_t x_stride, const float* dy,
                       int64_t dy_stride, float* gradient) const;
  void sum_bias(int64_t rows, const float* dy, int64_t dy_stride, float* gradient) const;
  // Into the parameter buffer of gradients: weight columns [0, in) and, unless told not to, bias.
  void finish(const float* gradient, float* values, bool with_bias = true) const;

  double work() const { return static_cast<double>(in_) * static_cast<double>(map_.out); }

 private:
  LinearMap map_;
  int64_t in_ = 0;
  const float* weights_ = nullptr;
  Buffer<float> transposed_;  // [in, padded out]
};

}  // namespace posattn::engine

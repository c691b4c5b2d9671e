#include "posattn/model/tiles/dense_map.h"

#include <algorithm>

namespace posattn::engine {

DenseMap::DenseMap(const LinearMap& map, int64_t columns)
    : map_(map), in_(columns ? columns : map.in) {}

void DenseMap::prepare(const float* weights) {
  weights_ = weights;
  transposed_.resize(in_ * padded(map_.out));
  tile_kernels().transpose(map_.out, in_, weights + map_.weight, map_.in, transposed_.data(),
                           padded(map_.out));
}

void DenseMap::forward(int64_t rows, const float* x, int64_t x_stride, float* y, int64_t y_stride,
                       Store store) const {
  tile_kernels().product(rows, map_.out, in_, x, x_stride, 1, transposed_.data(), padded(map_.out),
                         y, y_stride, store, weights_ + map_.bias);
}

void DenseMap::input_gradient(int64_t rows, const float* dy, int64_t dy_stride, float* dx,
                              int64_t dx_stride, Store store) const {
  tile_kernels().product(rows, in_, map_.out, dy, dy_stride, 1, weights_ + map_.weight, map_.in, dx,
                         dx_stride, store, nullptr);
}

void DenseMap::weight_gradient(int64_t rows, const float* x, int64_t x_stride, const float* dy,
                               int64_t dy_stride, float* gradient) const {
  tile_kernels().product(in_, map_.out, rows, x, 1, x_stride, dy, dy_stride, gradient,
                         padded(map_.out), Store::add, nullptr);
}

void DenseMap::sum_bias(int64_t rows, const float* dy, int64_t dy_stride, float* gradient) const {
  tile_kernels().column_sums(rows, map_.out, dy, dy_stride, bias_gradient(gradient));
}

void DenseMap::finish(const float* gradient, float* values, bool with_bias) const {
  tile_kernels().transpose(in_, map_.out, gradient, padded(map_.out), values + map_.weight,
                           map_.in);
  if (with_bias) std::copy_n(gradient + in_ * padded(map_.out), map_.out, values + map_.bias);
}

}  // namespace posattn::engine

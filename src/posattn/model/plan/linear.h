// y = x W^T + b of the plain executor and the reference.
#pragma once

#include "posattn/kernels/plain/product.h"
#include "posattn/model/parameters.h"
#include "posattn/model/plan/plan.h"

namespace posattn {

template <class T>
void linear(const LinearBlock& map, const Parameters<T>& parameters, int64_t rows, const T* x,
            T* y) {
  const auto& tensors = parameters.layout().tensors();
  const T* weight = parameters.slice(tensors[map.weight]).data();
  plain::product(false, true, rows, map.out, map.in, T(1), x, map.in, weight, map.in, false, y,
                 map.out);
  if (map.bias == no_tensor) return;
  const T* bias = parameters.slice(tensors[map.bias]).data();
  for (int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < map.out; ++c) y[r * map.out + c] += bias[c];
  }
}

// dx += dy W (null: not wanted); gradient, laid out as the parameters: dW += dy^T x, db += sums.
template <class T>
void linear_gradient(const LinearBlock& map, const Parameters<T>& parameters, int64_t rows,
                     const T* x, const T* dy, T* dx, T* gradient) {
  const auto& tensors = parameters.layout().tensors();
  const T* weight = parameters.slice(tensors[map.weight]).data();
  plain::product(true, false, map.out, map.in, rows, T(1), dy, map.out, x, map.in, true,
                 gradient + tensors[map.weight].offset, map.in);
  if (map.bias != no_tensor) {
    T* dbias = gradient + tensors[map.bias].offset;
    for (int64_t r = 0; r < rows; ++r) {
      for (int c = 0; c < map.out; ++c) dbias[c] += dy[r * map.out + c];
    }
  }
  if (dx == nullptr) return;
  plain::product(false, false, rows, map.in, map.out, T(1), dy, map.out, weight, map.in, true, dx,
                 map.in);
}

}  // namespace posattn

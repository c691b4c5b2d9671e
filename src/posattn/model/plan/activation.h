// The activation between the maps of an MLP.
#pragma once

#include <vector>

#include "posattn/kernels/generic/activation.h"
#include "posattn/model/spec.h"

namespace posattn {

template <class T>
void activate(Activation activation, const std::vector<T>& x, std::vector<T>& y) {
  const auto count = static_cast<int64_t>(x.size());
  y.resize(x.size());
  switch (activation) {
    case Activation::relu:
      return generic::relu(count, x.data(), y.data());
    case Activation::gelu:
      return generic::gelu(count, x.data(), y.data());
    case Activation::gelu_tanh:
      return generic::gelu_tanh(count, x.data(), y.data());
  }
}

// dy becomes dx, and y is computed again.
template <class T>
void activate_gradient(Activation activation, const std::vector<T>& x, std::vector<T>& dy,
                       std::vector<T>& y) {
  const auto count = static_cast<int64_t>(x.size());
  y.resize(x.size());
  switch (activation) {
    case Activation::relu:
      return generic::relu_gradient(count, x.data(), dy.data(), dy.data(), y.data());
    case Activation::gelu:
      return generic::gelu_gradient(count, x.data(), dy.data(), dy.data(), y.data());
    case Activation::gelu_tanh:
      return generic::gelu_tanh_gradient(count, x.data(), dy.data(), dy.data(), y.data());
  }
}

}  // namespace posattn

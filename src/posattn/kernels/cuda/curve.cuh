// The curves that a product may end with (product.h), and their slopes.
#pragma once

#include <cuda_runtime.h>

#include "posattn/kernels/cuda/product.h"

namespace posattn::cuda {

struct Gelu {  // x Phi(x)
  static constexpr float inverse_sqrt_2 = 0.70710678118654752f;
  static constexpr float inverse_sqrt_2pi = 0.39894228040143268f;

  __device__ static float area(float x) { return 0.5f * (1 + erff(x * inverse_sqrt_2)); }
  __device__ static float value(float x) { return x * area(x); }
  __device__ static float slope(float x) {
    return area(x) + x * inverse_sqrt_2pi * expf(-0.5f * x * x);
  }
};

struct GeluTanh {  // 0.5 x (1 + tanh(root (x + cubic x^3)))
  static constexpr float root = 0.79788456080286536f, cubic = 0.044715f;

  // tanh(u) = 1 - 2 / (1 + e^2u): its error is a last bit of 1, which is all that counts beside 1.
  __device__ static float bend(float x) {
    const float u = root * x * (1 + cubic * x * x);
    return 1 - __fdividef(2, 1 + __expf(2 * u));
  }
  __device__ static float value(float x) { return 0.5f * x * (1 + bend(x)); }
  __device__ static float slope(float x) {
    const float t = bend(x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root * (1 + 3 * cubic * x * x);
  }
};

__device__ inline float curve_value(Curve curve, float x) {
  switch (curve) {
    case Curve::none:
      return x;
    case Curve::relu:
      return x < 0 ? 0 : x;  // keeps a NaN
    case Curve::gelu:
      return Gelu::value(x);
    case Curve::gelu_tanh:
      return GeluTanh::value(x);
  }
  return x;
}

// Of a ReLU x may be its value.
__device__ inline float curve_slope(Curve curve, float x) {
  switch (curve) {
    case Curve::none:
      return 1;
    case Curve::relu:
      return x > 0 ? 1 : 0;
    case Curve::gelu:
      return Gelu::slope(x);
    case Curve::gelu_tanh:
      return GeluTanh::slope(x);
  }
  return 1;
}

}  // namespace posattn::cuda

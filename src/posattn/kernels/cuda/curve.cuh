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

  // tanh(u) = 1 - 2 / (1 + e^2u): its error is a last bit of 1, which is below the rounding of the
  // 1 it is added to.
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

struct Relu {                                                       // of which x may be the value
  __device__ static float value(float x) { return x < 0 ? 0 : x; }  // keeps a NaN
  __device__ static float slope(float x) { return x > 0 ? 1 : 0; }
};

struct Straight {
  __device__ static float value(float x) { return x; }
  __device__ static float slope(float) { return 1; }
};

// use(Relu()) and the like.
template <class Use>
void with_curve(Curve curve, Use use) {
  switch (curve) {
    case Curve::none:
      return use(Straight());
    case Curve::relu:
      return use(Relu());
    case Curve::gelu:
      return use(Gelu());
    case Curve::gelu_tanh:
      return use(GeluTanh());
  }
}

// Functions that are called: kernels that end in any curve would be long otherwise, and code that
// does not fit the instruction cache is slow even where it is skipped.
__device__ __noinline__ inline float curve_value(Curve curve, float x) {
  if (curve == Curve::relu) return Relu::value(x);
  if (curve == Curve::gelu) return Gelu::value(x);
  return curve == Curve::gelu_tanh ? GeluTanh::value(x) : x;
}
__device__ __noinline__ inline float curve_slope(Curve curve, float x) {
  if (curve == Curve::relu) return Relu::slope(x);
  if (curve == Curve::gelu) return Gelu::slope(x);
  return curve == Curve::gelu_tanh ? GeluTanh::slope(x) : 1;
}

}  // namespace posattn::cuda

// GELU of tile_kernels.h, exact and by tanh, a part of isa_kernels.cc. Both are x times a smooth
// step, and one exp gives the step and its slope.
#pragma once

#include <stdint.h>

#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

// A step from 0 to 1 at x, and its derivative.
struct Step {
  Vec value, slope;
};

inline Vec absolute(Vec x) { return x < 0 ? -x : x; }

// (1 + tanh z) / 2 = 1 / (1 + exp(-2 z)) with 2 z = x (root + root cubic x^2).
inline Step tanh_step(Vec x) {
  constexpr float twice_root = 1.5957691216f, cubic = 0.044715f;  // 2 sqrt(2 / pi)
  const Vec square = x * x;
  const Vec z = x * (twice_root + twice_root * cubic * square);
  const Vec e = exp_nonpositive(-absolute(z)), inverse = 1.0f / (1.0f + e);
  const Vec small = e * inverse;
  return {z < 0 ? small : inverse,
          small * inverse * (twice_root + 3 * twice_root * cubic * square)};
}

// Phi(x), the normal distribution's, by formula 7.1.26 of Abramowitz and Stegun for erf (within
// 1.5e-7, a unit in the last place of 1), and its density.
inline Step normal_step(Vec x) {
  constexpr float inverse_sqrt_2 = 0.70710678119f, inverse_sqrt_2pi = 0.39894228040f;
  const Vec e = exp_nonpositive(-0.5f * x * x);
  const Vec t = 1.0f / (1.0f + 0.3275911f * inverse_sqrt_2 * absolute(x));
  Vec polynomial = broadcast(1.061405429f);
  polynomial = polynomial * t - 1.453152027f;
  polynomial = polynomial * t + 1.421413741f;
  polynomial = polynomial * t - 0.284496736f;
  polynomial = polynomial * t + 0.254829592f;
  const Vec tail = 0.5f * polynomial * t * e;
  return {x < 0 ? tail : 1.0f - tail, inverse_sqrt_2pi * e};
}

template <Step (*step)(Vec)>
void times_step(int64_t count, const float* x, float* y) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Vec v = load(x + i);
    store(y + i, v * step(v).value);
  }
  if (i == count) return;
  const Vec v = load_part(x + i, count - i);
  store_part(y + i, v * step(v).value, count - i);
}

template <Step (*step)(Vec)>
void times_step_gradient(int64_t count, const float* x, const float* dy, float* dx, float* y) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Vec v = load(x + i), d = load(dy + i);
    const Step s = step(v);
    store(dx + i, d * (s.value + v * s.slope));
    store(y + i, v * s.value);
  }
  if (i == count) return;
  const int64_t part = count - i;
  const Vec v = load_part(x + i, part), d = load_part(dy + i, part);
  const Step s = step(v);
  store_part(dx + i, d * (s.value + v * s.slope), part);
  store_part(y + i, v * s.value, part);
}

}  // namespace
}  // namespace posattn

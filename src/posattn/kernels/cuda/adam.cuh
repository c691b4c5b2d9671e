#pragma once

#include <cuda_runtime.h>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::cuda {

// With g the gradient (training/optimiser.cc has the numbers):
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   w = keep w - step_size m / (sqrt(v) / root_correction2 + epsilon), where m / 0 = 0
__device__ inline void step_adam(const AdamNumbers<float>& n, float gradient, float& first,
                                 float& second, float& weight) {
  const float g = gradient + n.decay_to_gradient * weight;
  const float m = n.beta1 * first + n.rest1 * g;
  const float v = n.beta2 * second + n.rest2 * g * g;
  first = m;
  second = v;
  const float root = sqrtf(v) / n.root_correction2 + n.epsilon;
  weight = n.keep * weight - n.step_size * (root != 0 ? m / root : 0.0f);
}

}  // namespace posattn::cuda

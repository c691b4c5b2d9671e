// GELU and its approximation, for every slot of a fleet (a ReLU is the end of a product). For .cu
// files. Slots that rest are skipped (`steps` null: none rests).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

enum class Curve { gelu, gelu_tanh };

// y = curve(x), `count` numbers of each slot, `slot_stride` apart.
void enqueue_curve(Curve curve, int slots, int64_t count, int64_t slot_stride, const float* x,
                   float* y, const SlotStep* steps, cudaStream_t stream);
// dy becomes dx = dy times the slope at x.
void enqueue_curve_gradient(Curve curve, int slots, int64_t count, int64_t slot_stride,
                            const float* x, float* dy, const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda

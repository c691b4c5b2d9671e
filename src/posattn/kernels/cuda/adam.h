// The end of a training step, for every slot of a fleet: the optimiser's. For .cu files. Slots that
// rest are skipped (`steps` null: none rests).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

// One step of Adam on `size` weights of every slot, with numbers[slot]; elements whose `trained` is
// 0 stay (null: all are trained). gradient, moments and weights [slots, size].
void enqueue_adam(int slots, int64_t size, const AdamNumbers<float>* numbers,
                  const uint8_t* trained, const SlotStep* steps, const float* gradient,
                  float* first, float* second, float* weights, cudaStream_t stream);

}  // namespace posattn::cuda

// The two ends of a training step, for every slot of a fleet: the squared error with its gradient,
// and the optimiser's step. For .cu files. Slots that rest are skipped (`steps` null: none rests).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

// What the error is taken of; arrays node-major as in a step's data.
struct ErrorShape {
  int slots = 1;
  int32_t nodes = 0, sample_stride = 0, columns = 0;
};

// outputs [slots (output_slot_stride apart)][nodes, sample_stride, columns] become d loss / d
// output = 2 loss_scale (y - target) for present samples of nodes < real_nodes with `counted` 1,
// else 0; losses[slot] = loss_scale x sum of their squared errors. partial: [slots, nodes]
// workspace.
void enqueue_squared_error(const ErrorShape& shape, const float* targets, const uint8_t* counted,
                           const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                           double* partial, double* losses, cudaStream_t stream);

// One step of Adam on `size` weights of every slot, with numbers[slot]; elements whose `trained` is
// 0 stay (null: all are trained). gradient, moments and weights [slots, size].
void enqueue_adam(int slots, int64_t size, const AdamNumbers<float>* numbers,
                  const uint8_t* trained, const SlotStep* steps, const float* gradient,
                  float* first, float* second, float* weights, cudaStream_t stream);

}  // namespace posattn::cuda

// Losses of a step with their gradients, for every slot of a fleet. For .cu files. Slots that rest
// are skipped.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

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

// Classes that outputs are compared with; columns of ErrorShape are the classes. A label counts
// where it is not negative, its sample is present, its node < real_nodes and has `counted` 1.
struct Labels {
  const int32_t* labels = nullptr;   // [slots, nodes, sample_stride]
  const uint8_t* counted = nullptr;  // [slots, nodes, columns], the same for all columns of a node
};

// outputs [slots (output_slot_stride apart)][nodes, sample_stride, columns] become d loss / d
// output = scale (softmax(y) - [label]) where the label counts, else 0; losses[slot] = scale x sum
// of -log softmax(y)[label]; scale is 1 / the number of labels that count. Workspace: counts,
// partial [slots, nodes].
void enqueue_cross_entropy(const ErrorShape& shape, const Labels& labels, const SlotStep* steps,
                           float* outputs, int64_t output_slot_stride, int32_t* counts,
                           double* partial, double* losses, cudaStream_t stream);

}  // namespace posattn::cuda

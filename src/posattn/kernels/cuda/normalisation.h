// LayerNorm of rows, for every slot of a fleet. For .cu files. Slots that rest are skipped (`steps`
// null: none rests).
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

struct SlotVector {
  const float* data = nullptr;
  int64_t slot_stride = 0;
};

// y = gain (x - mean) / sqrt(variance + 1e-5) + shift, for each row.
void enqueue_layer_norm(int slots, int64_t rows, int32_t columns, Rows<const float> x,
                        SlotVector gain, SlotVector shift, Rows<float> y, const SlotStep* steps,
                        cudaStream_t stream);

// dy becomes dx; `terms` dy times the normalised x, whose column sums are the gradient of the gain
// (those of dy are the shift's).
void enqueue_layer_norm_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> x,
                                 SlotVector gain, Rows<float> dy, Rows<float> terms,
                                 const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda

// Gates g = 2 sigmoid(p) that rows are multiplied by, for every slot of a fleet; g is 1 for p = 0.
// For .cu files. Slots that rest are skipped (`steps` null: none rests).
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

// y = or += g x, all [rows, columns].
void enqueue_gate(int slots, int64_t rows, int32_t columns, Rows<const float> p,
                  Rows<const float> x, Rows<float> y, bool accumulate, const SlotStep* steps,
                  cudaStream_t stream);
// dx = g dy, in place when it is dy; dp = dy x g (1 - g / 2). `relu`: x is the value of a ReLU, and
// dx the gradient of what it was made of.
void enqueue_gate_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> p,
                           Rows<const float> x, Rows<const float> dy, Rows<float> dx,
                           Rows<float> dp, bool relu, const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda

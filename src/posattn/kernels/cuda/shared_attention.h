// One attention for all samples: mixing, and its gradients, for every slot of a fleet. For .cu
// files. Slots that rest are skipped.
//
// Rows are (node, sample), node-major; head h has columns h head_size .. of them.
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

struct MixingShape {
  int slots = 1;
  int32_t nodes = 0, samples = 0, heads = 0, head_size = 0;
  bool causal = false;  // node i has weights of nodes 0..i alone; others are not read
};

// Whether the nodes are few enough for the card and the sizes multiples of four.
bool mixing_fits(int32_t nodes, int32_t head_size);

// y = A x for each sample and head, or A^T x. attention: rows [head][node].
void enqueue_mixing(const MixingShape& shape, Rows<const float> attention, bool transposed,
                    Rows<const float> x, Rows<float> y, Precision precision, const SlotStep* steps,
                    cudaStream_t stream);

// dattention = the sum over samples of dy x^T, rows [head][node] as the attention's; where A is
// zero for absent nodes it may be anything. workspace [slots, product_workspace].
void enqueue_attention_weights_gradient(const MixingShape& shape, Rows<const float> x,
                                        Rows<const float> dy, Rows<float> dattention,
                                        Precision precision, const SlotStep* steps,
                                        float* workspace, cudaStream_t stream);

}  // namespace posattn::cuda

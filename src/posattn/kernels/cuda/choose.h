// Rows of weights that sum to one become rows with a single 1, for every slot of a fleet. For .cu
// files. Slots that rest are skipped.
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

// Rows are (sample, head, node). Draws are those of AttentionDraws (model/attention/rows.h).
struct ChoiceShape {
  int slots = 1;
  int32_t nodes = 0, heads = 0;
  int64_t samples = 0, first_sample = 0;
  int32_t layers = 0, layer = 0;
  bool drawn = false;  // else the largest
};
void enqueue_choose(const ChoiceShape& shape, Rows<const float> weights, Rows<float> chosen,
                    const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda

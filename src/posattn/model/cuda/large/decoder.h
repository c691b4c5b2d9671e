// The folded decoder of the large engine with the loss: y = w . r + b for every row r of the last
// layer's activations, and the gradient back to its pre-activations.
#pragma once

#include <cuda_runtime.h>

#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

struct LargeDecoder {
  StepData data;
  int slots = 1;
  int samples = 0;  // FleetShape::sample_stride()
  int nodes = 0;
  int hidden = 0;  // at most 128
  int groups = 0;  // a block adds up the gradients of one: consecutive samples

  const float* folded = nullptr;  // [slots, folded_size], w and b at their places
  int64_t folded_size = 0, weight = 0, bias = 0;

  // [slots, samples, nodes, hidden]: relu(u), then d loss / d u, zero for what does not count.
  float* rows = nullptr;
  float* partials = nullptr;  // dw and db at the same places, [slots, groups, folded_size]
  double* losses = nullptr;   // squared errors, before loss_scale, [slots, groups]
};

// Its sizes and places; what it works on is not set.
inline LargeDecoder large_decoder(const FleetShape& shape, const FoldedLayout& layout,
                                  const StepData& data, int groups) {
  LargeDecoder decoder;
  decoder.data = data;
  decoder.slots = shape.slots;
  decoder.samples = static_cast<int>(shape.sample_stride());
  decoder.nodes = layout.nodes;
  decoder.hidden = layout.hidden;
  decoder.groups = groups;
  decoder.folded_size = layout.size();
  decoder.weight = layout.decoder();
  decoder.bias = layout.decoder_bias();
  return decoder;
}

// Precision of the rows; all sums are in fp32.
void enqueue_large_decoder(const LargeDecoder& decoder, Precision precision, cudaStream_t stream);

}  // namespace posattn::cuda

// The folded decoder of the large engine with the loss: y = w . r + b for every row r of the last
// layer's activations, and the gradient back to its pre-activations.
#pragma once

#include <cuda_runtime.h>

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

// Precision of the rows; all sums are in fp32.
void enqueue_large_decoder(const LargeDecoder& decoder, Precision precision, cudaStream_t stream);

}  // namespace posattn::cuda

// What kernels know of a fleet: runs in lockstep, one per *slot*. No CUDA types.
#pragma once

#include <cstdint>

namespace posattn::cuda {

enum class Precision { fp32, tf32 };

// What differs between slots and steps; in device memory.
struct SlotStep {
  int32_t samples = 0;     // 0: the slot rests; its gradient, loss and outputs are not touched
  int32_t real_nodes = 0;  // variable length: nodes real_nodes .. spec.real_nodes - 1 are absent
  float loss_scale = 0;    // of squared errors: 1 / (samples x real_nodes x output_columns)
  uint64_t seed = 0;       // of draws, with the number of the step (StepContext, spec/batch.h)
  uint32_t number = 0;
};

}  // namespace posattn::cuda

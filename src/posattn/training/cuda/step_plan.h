// What a slot does in one step, made by the host for a whole epoch and read by kernels; and where a
// slot stands. Plain data in device memory.
#pragma once

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

struct StepPlan {
  SlotStep step;
  float clip = 0;  // largest norm of the gradient; 0: off
  AdamNumbers<float> adam = {};
  int32_t decays_maps_only = 0;  // 1: weight decay leaves biases, gains and tables alone
  int64_t order = 0;             // where the batch's sample numbers begin
  int64_t rows = 0;              // before the samples of its set
};

struct SlotCursor {
  int64_t plan = 0;   // where the slot's plans begin
  int32_t steps = 0;  // of an epoch

  // Where the present epoch stands.
  int32_t position = 0;      // steps taken
  double summed_loss = 0;    // of its steps
  double bad_loss = 0;       // the first that was not finite ...
  int32_t bad_position = 0;  // ... and its step, from 1; 0: none. The slot then rests
  int32_t bad_weights = 0;   // 1: a weight is not finite
  int32_t bad_squares = 0;   // 1: a second moment is not finite
};

}  // namespace posattn::cuda

// The kernels of a fleet's step around the engine's: which batch comes next, clipping, Adam, and
// at the ends of epochs the search for numbers that are not finite and the copies to go back to.
// All of a slot's sums have a fixed order. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda {

// What a slot does in one step, made by the host for a whole epoch and read by kernels; and where a
// slot stands. Plain data in device memory.
struct StepPlan {
  SlotStep step;
  float clip = 0;            // largest norm of the gradient; 0: off
  double clip_relative = 0;  // the same as a multiple of the root of the second moments' sum
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

// How a number is trained: weight decay may pull on linear maps only.
constexpr uint8_t trained_other = 1, trained_map = 2;

// What the kernels of a step work on; in device memory.
struct FleetArrays {
  int slots = 0;
  int64_t parameters = 0;  // numbers of a run's parameter buffer, a multiple of 16
  const StepPlan* plans = nullptr;
  SlotCursor* cursors = nullptr;     // [slots]
  StepPlan* current = nullptr;       // [slots]: of the step under way
  SlotStep* steps = nullptr;         // [slots]: its first part, for engines
  double* losses = nullptr;          // [slots]: by the engine
  double* squares = nullptr;         // [slots, 2, norm_parts]: sums for clipping
  const uint8_t* trained = nullptr;  // [parameters]: 0, or how a number is trained
  float* gradients = nullptr;        // [slots, parameters]
  float* state = nullptr;            // [3, slots, parameters]: weights, first, second moments
  float* backup = nullptr;           // the same after the last completed epoch
};

// Counts the loss of the step before and makes the next one current. A slot whose loss is not
// finite, or whose epoch has ended, rests.
void begin_step(const FleetArrays& fleet, cudaStream_t stream);

// The sum of squares of the trained gradient, in parts, and behind it that of the second moments
// where it is needed.
constexpr int norm_parts = 32;
void sum_gradient_squares(const FleetArrays& fleet, cudaStream_t stream);

// One step of Adam (training/optimiser.cc) for every slot that does not rest; with `clip` the
// gradient is multiplied by min(1, clip / (norm + 1e-6)) first, as clip_gradient does, or by
// min(1, relative_limit / norm).
void update_weights(const FleetArrays& fleet, bool clip, cudaStream_t stream);

// Counts the last loss and looks for numbers that are not finite in these slots' state.
void end_epoch(const FleetArrays& fleet, const int32_t* slots, int count, cudaStream_t stream);

struct EpochBegin {
  int32_t slot = 0;
  int32_t rests = 0;  // 1: the run has no further epoch
};
// Copies these slots' state to the backup and sets their cursors to the start, or to rest.
void begin_epoch(const FleetArrays& fleet, const EpochBegin* slots, int count, cudaStream_t stream);

}  // namespace posattn::cuda

// One training step's loss and gradient for every run of a fleet at once. Engines: general (every
// spec that trains) and three fused ones for the paper's sizes. For .cu files.
//
// A *slot* is a run's place in the fleet. What a slot computes depends on nothing but its own
// parameters and data and on the shape's spec, batch and precision: not on the number of slots, and
// sums have one order (no float atomics), so results are bitwise repeatable and the same in any
// fleet.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "posattn/kernels/cuda/fleet.h"
#include "posattn/model/network.h"
#include "posattn/model/spec.h"

namespace posattn::cuda {

// Small engines add up the gradients of tiles in groups of this many, then the groups, both in
// order. The number is part of the result's rounding, so it never depends on the fleet.
constexpr int tiles_per_group = 3;

// What all runs of a fleet share.
struct FleetShape {
  ModelSpec spec;  // resolved
  int slots = 1;
  int64_t batch = 0;  // most samples of a step
  Precision precision = Precision::fp32;

  // Samples are stored in a multiple of 16; absent ones hold zeros.
  int64_t sample_stride() const { return (batch + 15) / 16 * 16; }
};

// The batch, node-major, in device memory. Node i is row i of P; scratch nodes come last, at
// spec.real_nodes, whatever the length. Absent nodes take no part in attention (no node
// attends to them) and not in the loss.
struct StepData {
  const SlotStep* slots = nullptr;   // [slots]
  const float* inputs = nullptr;     // [slots, nodes, sample_stride, data_columns]; zero for
                                     // scratch and absent nodes and absent samples
  const float* targets = nullptr;    // [slots, nodes, sample_stride, output_columns], likewise
  const uint8_t* counted = nullptr;  // [slots, nodes, output_columns]: 1 where an output counts at
                                     // full length (also ask node < real_nodes); 0 behind the
                                     // nodes that the spec reads
  // [slots, nodes, sample_stride], -1 for scratch and absent nodes and absent samples; null where
  // the model has none.
  const int32_t* tokens = nullptr;
  const int32_t* labels = nullptr;  // in place of targets
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  // Enqueues on `stream`, in any number of kernels and without talking to the host (the calls are
  // captured into a graph): for every slot that does not rest
  //   losses[slot]    = loss_scale x sum of squared errors over counted outputs, or the mean
  //                     cross-entropy of the labels that count
  //   gradients[slot] = d loss / d parameters, every trained tensor overwritten
  // parameters and gradients are [slots, ParameterLayout(spec).buffer_size()].
  virtual void enqueue(const StepData& data, const float* parameters, float* gradients,
                       double* losses, cudaStream_t stream) = 0;

  // "general", "fused-positional", "fused-standard", "fused-medium"
  virtual const char* name() const = 0;
};

// The engine that choose_engine (engine_choice.h) gives the model on the device in use.
std::unique_ptr<StepEngine> make_step_engine(const FleetShape& shape, Path path);

// Device memory the engine takes for this shape, in bytes; what grows with the slots dominates.
int64_t step_engine_bytes(const FleetShape& shape, Path path);

}  // namespace posattn::cuda

// Validation of a fleet's runs on the GPU: what the step engine says of the validation samples'
// loss, of all slots at once. It is a step whose gradient nobody reads, of which there are few. For
// losses that are sums over samples, which squared errors are. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <optional>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/training/cuda/fleet_data.h"
#include "posattn/training/device_fleet.h"

namespace posattn::cuda {

class FleetValidation {
 public:
  static bool supports(const ModelSpec& spec) { return spec.loss == Loss::squared_error; }

  // Makes the samples with `threads` threads. `parameters` as StepEngine::enqueue has them;
  // `gradients` is where those of a step go.
  FleetValidation(const FleetShape& shape, const std::vector<DeviceRun>& runs, StepEngine& engine,
                  const float* parameters, float* gradients, int threads, cudaStream_t stream);

  // How much device memory it takes, in bytes.
  static int64_t bytes_needed(const FleetShape& shape, const std::vector<RunConfig>& configs);

  // Enqueues the losses of all slots with the weights they have by then.
  void enqueue(cudaStream_t stream);
  // Once the stream has been waited for.
  double loss(int slot) const;

 private:
  int slots_;
  int64_t steps_;  // in which a run's samples are taken, of the run that has most
  FleetData data_;
  DeviceBuffer<StepPlan> plans_;       // [steps, slots]; without samples where a run has fewer
  DeviceBuffer<SlotStep> slot_steps_;  // [steps, slots]: their first parts
  DeviceBuffer<double> losses_;        // [steps, slots]
  PinnedBuffer<double> host_losses_;
  std::optional<StepGraph> graph_;
};

}  // namespace posattn::cuda

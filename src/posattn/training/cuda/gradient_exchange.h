// One run that several ranks train, each on its own GPU or a share of one: a rank finds loss and
// gradient of its part of the batch, the host adds them up over the ranks in their order
// (data_parallel_steps.h), and every rank gets the mean back for its own step of Adam. All have the
// same bits, as on CPUs. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/training/cuda/fleet_steps.h"
#include "posattn/training/cuda/pinned_buffer.h"
#include "posattn/training/data_parallel_steps.h"

namespace posattn::cuda {

class GradientExchange {
 public:
  // For a fleet of one slot.
  GradientExchange(const FleetShape& shape, int64_t parameters, DataParallelSteps& ranks);

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }

  // Enqueues what exchange() needs beside loss and gradient; part of the step's graph.
  void enqueue_terms(const FleetArrays& fleet, const StepData& data, cudaStream_t stream);

  // Waits for the step that the stream has been given, of which `plan` has this rank's part, and
  // enqueues the whole batch's loss and gradient in the place of the part's: also where that is
  // empty, the slot does not rest. False where any rank has `stop`.
  bool exchange(const FleetArrays& fleet, const StepPlan& plan, bool stop, cudaStream_t stream);

 private:
  int64_t terms_of(const StepPlan& plan) const;

  FleetShape shape_;
  DataParallelSteps& ranks_;
  int64_t parameters_;
  DeviceBuffer<int32_t> label_counts_;  // [nodes], where labels are what counts
  PinnedBuffer<int32_t> label_counts_host_;
  PinnedBuffer<float> gradient_;  // and the numbers that travel with it
  PinnedBuffer<double> loss_;
  PinnedBuffer<SlotStep> step_;
};

}  // namespace posattn::cuda

// Many runs in lockstep on one GPU: every step is a step of each of them. They share the model's
// spec, batch size, precision, path and the size of their tests; seeds, task, data and all other
// settings are each run's own. Everything of an epoch stays on the GPU; the host is asked between
// epochs.
//
// A run's *slot* is its place in the fleet. What it computes depends on its own settings alone: not
// on the slot, nor on the other runs.
#pragma once

#include "posattn/model/network.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct DeviceRun {
  RunConfig config;
  RunState state;  // to go on from
};

// One run's epoch has ended.
struct EpochEnd {
  int slot = 0;
  EpochRecord record;      // without tests; with a validation that is due where the loss is one of
                           // squared errors
  std::string divergence;  // not empty: the run diverged in this epoch and rests from now on
};

class DeviceFleet {
 public:
  // Makes the training data with `threads` threads. Throws Error(device) where the GPU or its
  // memory do not allow it.
  DeviceFleet(const std::vector<DeviceRun>& runs, int threads);
  ~DeviceFleet();
  DeviceFleet(DeviceFleet&&) noexcept;

  // Whether two runs may share a fleet.
  static bool compatible(const RunConfig& a, const RunConfig& b);
  // Device memory of a fleet of these runs, in bytes, and how much there is at present.
  static int64_t bytes_needed(const std::vector<RunConfig>& configs);
  static int64_t bytes_free();

  const char* engine() const;  // "general", "fused-positional", ...
  int64_t steps_per_epoch(int slot) const;
  bool finished() const;  // every run rests

  // Waits for the next end of an epoch and returns the runs it is the end of; when it returns, the
  // GPU is at work on what follows. Nothing once `stop` is set or all runs rest.
  std::vector<EpochEnd> advance(const std::atomic<bool>* stop = nullptr);

  // The run takes no further part.
  void rest(int slot);

  // The run after its last completed epoch, as training can go on from it; with moments = false
  // without those. The evaluations' part of the state is that of the run's start. May be called
  // between calls of advance.
  RunState state(int slot, bool moments = true);

  // The runs' model on the same GPU in fp32, with whatever weights, for tests. Threads may use it
  // while the fleet advances.
  ForwardPass& network();

  // One step of all runs, enqueued `count` times and waited for: seconds of one. For benchmarks;
  // results count no more afterwards.
  double time_steps(int count);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace posattn

// What the host knows of one slot of a fleet: its run's counters and schedule, the plan of its next
// epoch, and what an epoch's numbers mean for it. For .cu files.
#pragma once

#include <algorithm>

#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/training/cuda/fleet_data.h"
#include "posattn/training/cuda/fleet_steps.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run_config.h"

namespace posattn::cuda {

class FleetSlot {
 public:
  FleetSlot(const DeviceRun& run, std::vector<SetPlace> sets);

  int64_t steps_per_epoch() const { return steps_; }
  // Whether the run goes on after its last completed epoch.
  bool active() const { return active_; }
  void rest() { active_ = false; }
  bool has_epoch(int64_t epoch) const { return epoch <= config_.epochs; }
  int64_t completed_epochs() const { return epoch_; }

  // Whether the epoch after the last completed one ends with a validation.
  bool validates_next() const;

  // Writes the steps of the next epoch to plans[0 .. steps_per_epoch() - 1].
  void plan_epoch(const ModelSpec& spec, StepPlan* plans) const;

  // Takes over what the epoch gave; `seconds` since the fleet began.
  EpochEnd close_epoch(const SlotCursor& cursor, double seconds);

  // Writes counters and schedule as they are after the last completed epoch.
  void describe(RunState& state) const;

 private:
  RunConfig config_;
  std::vector<SetPlace> sets_;
  int64_t steps_ = 0;  // of an epoch
  OptimiserOptions optimiser_;
  ScheduleOptions schedule_;
  bool active_;

  // What holds after the last completed epoch.
  int64_t epoch_, step_;
  double seconds_, first_seconds_;
  ScheduleState schedule_state_;
  std::optional<double> validation_loss_, best_validation_loss_;  // of the start
};

constexpr int state_parts = 3;  // weights, first and second moments

// Samples that tests and validation compute at once. Kernels are chosen by their number, so it must
// be the same for all runs of a fleet (see compatible).
inline int64_t tested_at_once(const RunConfig& config) {
  return std::min<int64_t>(1024, std::max(config.test_samples, config.validation_samples));
}

inline FleetShape fleet_shape(const RunConfig& config, std::size_t slots) {
  FleetShape shape;
  shape.spec = model_spec(config);
  shape.slots = static_cast<int>(slots);
  shape.batch = config.batch;
  shape.precision = config.precision == "tf32" ? Precision::tf32 : Precision::fp32;
  return shape;
}

}  // namespace posattn::cuda

// One run: one configuration and seed, from its data to its trained weights. It computes only;
// folders and checkpoint files are recording.h's.
//
// Data, batches and initial values are functions of the seeds alone, so both architectures of a
// seed see the same batches, and a run restored from a state goes on bit for bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/measurement.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/network.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run_config.h"
#include "posattn/training/schedule.h"

namespace posattn {

// What one epoch gave; one line of metrics.jsonl.
struct EpochRecord {
  int64_t epoch = 0;      // completed epochs, from 1
  int64_t step = 0;       // completed optimiser steps
  double train_loss = 0;  // mean of the batch losses during the epoch; NaN where that was lost
  double lr = 0;          // rate of the epoch's last step; NaN where that was lost
  std::optional<double> validation_loss;
  std::vector<Measurement> tests;  // empty where none is due
  double seconds = 0;              // of training so far, over all sittings
};
std::string to_json(const EpochRecord& record);  // one line

// `where` names the line in the Error(data) that a bad one is.
EpochRecord epoch_record_from_json(std::string_view line,
                                   const std::string& where = "a line of metrics");

// Everything that changes while training.
struct RunState {
  explicit RunState(const std::shared_ptr<const ParameterLayout>& layout)
      : optimiser(layout), parameters(layout) {}
  int64_t epoch = 0;
  double seconds = 0;
  ScheduleState schedule;
  OptimiserState<float> optimiser;  // its step count is the run's
  Parameters<float> parameters;
  std::optional<double> validation_loss, best_validation_loss;
};

class Run {
 public:
  // Makes the data and the initial values. `config` must be valid.
  Run(const RunConfig& config, int threads);
  // Goes on from `state`, which was made with these settings.
  Run(const RunConfig& config, int threads, RunState state);
  ~Run();
  Run(Run&&) noexcept;

  const RunConfig& config() const;
  int64_t steps_per_epoch() const;

  // True after the last epoch, and after a divergence.
  bool finished() const;
  // Why the run stopped early: the loss or a weight is no longer finite. Empty otherwise.
  const std::string& divergence() const;

  // Trains one epoch. Nothing when the epoch diverged or `stop` was set: the state is then that
  // before the epoch, so it is always one that training can go on from. So it is when a Watch ends
  // the epoch, its validation or its tests.
  std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop = nullptr);

  // Takes effect at the next epoch; never changes a result.
  void set_threads(int threads);

  const RunState& state() const;
  void restore(RunState state);
  Model model() const;  // as saved to model.safetensors

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace posattn

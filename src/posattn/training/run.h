// One run: one configuration and seed, from its data to its trained weights. It computes only;
// folders and checkpoint files are recording.h's.
//
// Data, batches and initial values are functions of the seeds alone, so both architectures of a
// seed see the same batches, and a run restored from a state goes on bit for bit.
#pragma once

#include <atomic>

#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/hints.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run_config.h"

namespace posattn {

// What one epoch gave; one line of metrics.jsonl.
struct EpochRecord {
  int64_t epoch = 0;      // completed epochs, from 1
  int64_t step = 0;       // completed optimiser steps
  double train_loss = 0;  // mean of the batch losses, without that of hints; NaN where it was lost
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
  Parameters<float> parameters;     // of training_spec: the model's, then the maps of hints
  std::optional<double> validation_loss, best_validation_loss;
};

// What a run is made of, whichever engine trains it: its data, its options, its first state, its
// model file, and how a divergence is put into words.

// Data sets, one per length, in the same order for every purpose.
// The training data of epoch `epoch`, from 1: all the same, or where they are fresh the next of an
// endless set.
std::vector<Dataset> training_data(const RunConfig& config, int64_t epoch, int threads);
std::vector<Dataset> validation_data(const RunConfig& config, int threads);

OptimiserOptions optimiser_options(const RunConfig& config);
ScheduleOptions schedule_options(const RunConfig& config, int64_t steps_per_epoch);

// Initial values, and everything else at its start.
RunState initial_state(const RunConfig& config);

// The model as saved to model.safetensors.
Model trained_model(const RunConfig& config, const RunState& state);

// Why epoch `epoch` could not be completed.
enum class NotFinite { loss, weight, squared_gradient };
// `loss` and `step` (from 1) matter for NotFinite::loss only.
std::string divergence_message(NotFinite what, double loss, int64_t step, int64_t epoch);

// Validation and tests of a run on its way: what is due after an epoch.

// How a run's model is tested: samples, seed and purpose; the axis and its values are the caller's.
EvaluationRequest test_request(const RunConfig& config, const Model& model);

class RunEvaluation {
 public:
  RunEvaluation(const RunConfig& config, int threads);  // makes the validation data

  // What is to be computed after this epoch.
  static bool validation_due(const RunConfig& config, int64_t epoch);
  static bool tests_due(const RunConfig& config, int64_t epoch);

  // Puts what is due after record.epoch into the record and the state, whose epoch and parameters
  // are those after it. A validation loss that the record has is not computed again. `network` is
  // of the run's spec; tests are computed by `testing`, or where there is none by a CPU engine.
  void evaluate_when_due(ForwardPass& network, int threads, RunState& state, EpochRecord& record,
                         ForwardPass* testing = nullptr) const;

 private:
  RunConfig config_;
  const Task& task_;
  std::optional<Hints> hints_;
  std::vector<Dataset> validation_;          // one set per length
  std::vector<std::vector<uint8_t>> masks_;  // of each set
};

class Run {
 public:
  // Makes the data and the initial values. `config` must be valid.
  Run(const RunConfig& config, int threads) : Run(config, threads, initial_state(config)) {}
  // Goes on from `state`, which was made with these settings.
  Run(const RunConfig& config, int threads, RunState state);

  const RunConfig& config() const { return config_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // True after the last epoch, and after a divergence.
  bool finished() const { return state_.epoch >= config_.epochs || !divergence_.empty(); }
  // Why the run stopped early: the loss or a weight is no longer finite. Empty otherwise.
  const std::string& divergence() const { return divergence_; }

  // Trains one epoch. Nothing when the epoch diverged or `stop` was set: the state is then that
  // before the epoch, so it is always one that training can go on from. So it is when a Watch ends
  // the epoch, its validation or its tests.
  std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop = nullptr);

  // Takes effect at the next epoch; never changes a result.
  void set_threads(int threads);

  const RunState& state() const { return state_; }
  void restore(RunState state);
  Model model() const { return trained_model(config_, state_); }  // as in model.safetensors

 private:
  bool run_steps(const std::atomic<bool>* stop, EpochRecord& record);
  bool diverge(NotFinite what, double loss = 0);

  void add_labels();

  RunConfig config_;
  std::optional<Hints> hints_;
  ModelSpec spec_;
  int threads_;
  Network network_;
  std::vector<Dataset> train_;               // one set per length
  int64_t train_epoch_;                      // the epoch it was made for
  std::vector<std::vector<uint8_t>> masks_;  // of each set
  int64_t steps_per_epoch_;
  OptimiserOptions optimiser_;
  ScheduleOptions schedule_;
  RunState state_;
  Parameters<float> gradient_;
  RunEvaluation evaluation_;
  std::string divergence_;
};

}  // namespace posattn

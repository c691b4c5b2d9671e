// What a run is made of, whichever engine trains it: its data, its options, its first state, its
// model file, and how a divergence is put into words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posattn/evaluation/evaluate.h"
#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"
#include "posattn/training/schedule.h"

namespace posattn {

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
  std::vector<Dataset> validation_;          // one set per length
  std::vector<std::vector<uint8_t>> masks_;  // of each set
};

}  // namespace posattn

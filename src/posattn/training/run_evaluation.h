// Validation and tests of a run on its way: what is due after an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/evaluation/evaluate.h"
#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"

namespace posattn {

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

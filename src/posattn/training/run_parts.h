// What a run is made of, whichever engine trains it: its data, its options, its first state, its
// model file, and how a divergence is put into words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace posattn

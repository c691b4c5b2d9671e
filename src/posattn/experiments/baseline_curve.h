// A baseline of a task (tasks/baseline.h) as a curve beside those of an experiment's runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posattn/experiments/curves.h"

namespace posattn {

// Its test errors on the samples that runs of these seeds are tested on. Nothing is trained or
// recorded: the samples follow from the settings.
Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds);

}  // namespace posattn

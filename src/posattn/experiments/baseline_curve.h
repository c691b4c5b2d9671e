// Baselines of tasks (tasks/task.h) as further curves of an experiment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/experiments/curves.h"
#include "posattn/tasks/task.h"

namespace posattn {

// The test errors of a baseline on the samples that runs of these seeds are tested on. Nothing is
// trained or recorded: the samples follow from the settings.
Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds);

// The name of a baseline that no task offers itself: the exact network that posattn compiles for a
// task of the library (programs/*.par) or for k-hop.
inline constexpr std::string_view compiled_baseline = "compiled";

// The task's baseline of this name, or its compiled network. Throws unknown_name(usage), which
// names those that there are.
Baseline find_experiment_baseline(const Task& task, std::string_view name);

}  // namespace posattn

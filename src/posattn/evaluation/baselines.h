// A task's baselines (tasks/task.h), measured as models are: on the same samples, by the same
// metrics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/tasks/task.h"

namespace posattn {

// The baseline of this name among those that the task offers and `more`. Throws
// unknown_name(usage), which names them.
Baseline find_baseline(const Task& task, std::string_view name, std::vector<Baseline> more = {});

// Every metric of the task at x of the axis.
std::vector<Measurement> baseline_rows(const Baseline& baseline, const Task& task,
                                       const TestSamples& tests, const std::string& axis, double x);

}  // namespace posattn

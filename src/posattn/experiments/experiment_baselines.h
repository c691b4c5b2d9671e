// What an experiment may set beside its lines without training it: the baselines that a task offers
// (tasks/baseline.h), and "compiled", the exact network that posattn compiles for it.
#pragma once

#include <string_view>

#include "posattn/tasks/baseline.h"
#include "posattn/tasks/task.h"

namespace posattn {

// The compiled network of a task of the library (programs/*.par) or of k-hop.
inline constexpr std::string_view compiled_baseline = "compiled";

// Throws unknown_name(usage), which names those that there are.
Baseline find_experiment_baseline(const Task& task, std::string_view name);

}  // namespace posattn

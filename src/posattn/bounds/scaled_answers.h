// Whether a task's answers scale with its input: y(c x) = c y(x) for c > 0.
#pragma once

#include "posattn/tasks/dataset.h"

namespace posattn::bounds {

// Looked at, not believed: every sample of the set is solved again at several powers of two, for
// which both sides are exact. False for tasks of classes, and of tokens.
bool answers_scale(const Task& task, const Dataset& set);

}  // namespace posattn::bounds

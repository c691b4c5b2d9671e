// Learning algorithms in the commands on programs: compile, verify and programs.
#pragma once

#include "posattn/base/error.h"
#include "posattn/programs/learning/check.h"

namespace posattn {

ExitCode compile_learning(const LearningProgram& program, const std::string& output, bool json);

// Prints what was found; throws Error(verification) where the model does not hold.
ExitCode verify_learning(const LearningRequest& request, const std::string& path, bool json);

}  // namespace posattn

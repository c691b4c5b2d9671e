// The way of one input through a parallel program: its words after every round, by the interpreter.
#pragma once

#include <span>
#include <string>

#include "posattn/programs/form/static_program.h"
#include "posattn/report/steps/walk.h"

namespace posattn {

// `text` is the program's own, `input` [processors, inputs]. The characters of `letters` stand for
// 0, 1, ... in the first input, and in words with the same largest number that are no inputs.
// Throws Error(usage) for a walk that is too large.
Walk program_walk(const StaticProgram& program, const std::string& text,
                  std::span<const double> input, const std::string& letters = {});

}  // namespace posattn

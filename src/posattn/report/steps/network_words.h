// How far the numbers of a compiled network are from the words of its program.
#pragma once

#include <span>

#include "posattn/model/model_file.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/report/steps/walk.h"

namespace posattn {

// Notes at each step of the program's walk which layers did it, and the largest difference there.
// Throws Error(data) for a network that cannot be the program's.
void compare_with_network(const Model& model, const StaticProgram& program,
                          std::span<const double> input, Walk& walk);

}  // namespace posattn

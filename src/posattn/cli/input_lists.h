// --input LIST, once for each input of a program.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

using InputLists = std::vector<std::vector<double>>;

// Numbers separated by commas, of each text.
InputLists parse_inputs(const std::vector<std::string>& texts);

// The numbers [processors, inputs] from one list for each input; a single number is everybody's.
// Throws Error(usage) where they do not fit the program; `hint` is for a list of another length.
std::vector<double> arranged(const InputLists& lists, const StaticProgram& program,
                             const std::string& hint = {});

}  // namespace posattn

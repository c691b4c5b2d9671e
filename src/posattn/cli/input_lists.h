// --input of a program: once for each of its inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/cli/program_input.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {

// The numbers [processors, inputs] from one list for each input; a single number of a list behind
// the first is everybody's. Throws Error(data) where they do not fit the program, with `hint` for a
// list of another length, and Error(usage) for another count of lists.
std::vector<double> given_numbers(const std::vector<std::string>& inputs,
                                  const StaticProgram& program, const std::string& hint);

// A program of the library or a file at the length that is asked for, or that of its input.
struct GivenProgram {
  ProgramInput input;
  int64_t length;
  std::vector<double> numbers;  // [processors, inputs]
};
GivenProgram given_program(const std::string& name_or_path, const std::vector<std::string>& inputs,
                           std::optional<int64_t> length, const Settings& settings,
                           bool whole = false);

}  // namespace posattn

// posattn run --level mpi: a program's machines as the ranks of an MPI job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// The outputs of all machines on rank 0, nothing on the others. Throws Error(usage) with the
// command that is right where there are more or fewer ranks than machines.
std::optional<std::vector<double>> run_on_ranks(const StaticProgram& program,
                                                const std::vector<double>& inputs,
                                                const std::vector<std::string>& command_line);

}  // namespace posattn

// A program's parameters: their defaults, or what the user sets.
#pragma once

#include <vector>

#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/settings.h"

namespace posattn::language {

// Each in the order of the text; a default may use n and the parameters above it. Throws
// Error(usage) for a setting that the program does not have or that its range forbids.
std::vector<ProgramParameter> parameters_of(const SyntaxTree& tree, const Settings& settings,
                                            Arithmetic& arithmetic);

// As names of the program.
Scope parameter_scope(const std::vector<ProgramParameter>& parameters);

}  // namespace posattn::language

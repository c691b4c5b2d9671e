// Runs a program's statements for one n, which builds the static program.
#pragma once

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/syntax.h"

namespace posattn::language {

StaticProgram elaborate(const SyntaxTree& tree, const std::string& name, int length,
                        const Source& source, const Limits& limits);

}  // namespace posattn::language

// Runs a program's statements for one n, which builds the static program.
#pragma once

#include "posattn/programs/language/syntax.h"
#include "posattn/programs/static_program.h"

namespace posattn::language {

StaticProgram elaborate(const SyntaxTree& tree, const std::string& name, int length,
                        const Source& source, const Limits& limits);

}  // namespace posattn::language

// Tables of numbers: table NAME = [[a, b], [c, d]] and edges NAME = (u, v, weight), ...
#pragma once

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

// The nodes of edges are processors.
NumberTable make_table(const TableStatement& statement, Position position, int processors,
                       const Scope& scope, Arithmetic& arithmetic);

}  // namespace posattn::language

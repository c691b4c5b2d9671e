// Tables of numbers: table NAME = [[a, b], [c, d]] and edges NAME = (u, v, weight), ...
#pragma once

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

NumberTable make_table(const TableStatement& statement, Position position, const Scope& scope,
                       Arithmetic& arithmetic);

}  // namespace posattn::language

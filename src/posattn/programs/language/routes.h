// Who hears whom, as a receive says it.
#pragma once

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

Route route_of(const ReceiveStatement& statement, int processors, const Scope& scope,
               Arithmetic& arithmetic);
Route route_of(const SumStatement& statement, int processors, Position position, const Scope& scope,
               Arithmetic& arithmetic);

}  // namespace posattn::language

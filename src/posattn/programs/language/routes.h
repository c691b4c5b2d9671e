// Who hears whom, as a receive says it.
#pragma once

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

Route route_of(const ReceiveStatement& statement, int processors, const Scope& scope,
               Arithmetic& arithmetic);
Route route_of(const SumStatement& statement, int processors, Position position, const Scope& scope,
               Arithmetic& arithmetic);

// A route for each place that a weighted one reads, weights left out: as many as its longest row
// has. A processor with fewer hears its last again, one without any hears nothing.
std::vector<Route> one_by_one(const Route& route, int processors);

}  // namespace posattn::language

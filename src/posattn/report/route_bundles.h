// What a round's processors read, for drawings: receives with one route are one bundle of arrows.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

struct RouteBundle {
  const Route* route;              // the round's own
  std::vector<std::string> names;  // of what is read
  std::vector<int> words;          // of the program, one for each name
};

// As the program reads: what only the lowering of an exchange reads is no part of it.
std::vector<RouteBundle> route_bundles(const Round& round);

}  // namespace posattn

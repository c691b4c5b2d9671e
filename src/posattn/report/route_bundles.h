// What a round's processors hear, for drawings: receives with one route are one bundle of arrows.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

struct RouteBundle {
  const Route* route;              // the round's own
  std::vector<std::string> names;  // of what is heard
  std::vector<int> words;          // of the program, one for each name: what is read
};

std::vector<RouteBundle> route_bundles(const Round& round);

}  // namespace posattn

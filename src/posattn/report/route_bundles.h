// What a round's processors read, for drawings: receives with one route are one bundle of arrows.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

struct RouteBundle {
  const Route* route;  // the round's own
  // What is read: a word's name, or "p again" where a comparator's second head reads p a second
  // time. Elsewhere that head reads the processor's own word.
  std::vector<std::string> names;
  std::vector<int> words;  // of the program, one for each name
};

std::vector<RouteBundle> route_bundles(const Round& round);

// The line of a legend for names of one bundle or several: "reads x, y", or "second head: reads p
// again".
std::string reads_text(const std::vector<std::string>& names);

}  // namespace posattn

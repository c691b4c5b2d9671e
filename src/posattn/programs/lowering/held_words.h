// Where a planned network holds the words of its program between rounds.
#pragma once

#include <vector>

#include "posattn/programs/lowering/network_plan.h"

namespace posattn {

struct HeldWords {
  std::vector<int> layers;   // that carry the round out; none where the output does not need it
  int depth = 0;             // layers that are done when the round ends
  std::vector<int> columns;  // of each word of plan.program then; -1: not held
};

// Round -1: before the first.
HeldWords held_words(const NetworkPlan& plan, int round);

}  // namespace posattn

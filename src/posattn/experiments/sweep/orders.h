// Which runs of a sweep are trained together, and in which order they are handed out.
#pragma once

#include <cstddef>
#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

// Places of `configs` in orders of one shape each, the costliest first, so that no long one is left
// for the end. An order has no more runs than a rank can train at a time (`most`), and no more than
// its part of the sweep.
std::vector<std::vector<std::size_t>> plan_orders(const std::vector<RunConfig>& configs, int ranks,
                                                  std::size_t most);

}  // namespace posattn

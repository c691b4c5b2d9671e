// Which runs of a grid are trained together.
#pragma once

#include <cstddef>
#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

// Places of `configs` whose models have one shape, which a GPU trains in lockstep; shapes, and
// places of a shape, in their order.
std::vector<std::vector<std::size_t>> by_shape(const std::vector<RunConfig>& configs);

// Places of `configs` in chunks of at most `most` runs. Runs of one shape come together and stay in
// one chunk, or share as few as they can in equal parts, the longest first. Otherwise the order is
// kept.
std::vector<std::vector<std::size_t>> plan_chunks(const std::vector<RunConfig>& configs,
                                                  std::size_t most);

}  // namespace posattn

// Random sets of places, for tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

// `count` of `size` places: 1 for those chosen. All sets of so many are alike.
std::vector<uint8_t> random_subset(RandomStream& random, int size, int count);

}  // namespace posattn

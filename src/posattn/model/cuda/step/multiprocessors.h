// How many multiprocessors the device has: what engines cut their work by. For .cu files.
#pragma once

#include <cstdint>

namespace posattn::cuda {

int64_t multiprocessors();

// How many of a slot's `tiles` a block takes, at most 32, so that the last round of blocks leaves
// few multiprocessors idle; a block's start costs `start` half tiles.
int tiles_of_block(int64_t tiles, int64_t slots, int64_t processors, int start);

}  // namespace posattn::cuda

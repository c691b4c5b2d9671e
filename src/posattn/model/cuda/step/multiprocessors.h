// How many multiprocessors the device has: what engines cut their work by. For .cu files.
#pragma once

#include <cstdint>

namespace posattn::cuda {

int64_t multiprocessors();

}  // namespace posattn::cuda

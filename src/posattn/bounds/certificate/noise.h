// Standard normal numbers by the thousand.
#pragma once

#include <span>

#include "posattn/base/random.h"

namespace posattn::bounds {

// Box-Muller as in RandomStream::normal, but both of a pair and in float.
void fill_normal(RandomStream& random, std::span<float> numbers);

}  // namespace posattn::bounds

// How much a network's outputs move with its inputs, on data.
#pragma once

#include <cstdint>
#include <span>

#include "posattn/bounds/collapsed_network.h"

namespace posattn::bounds {

// The root mean square over samples [samples, real nodes] of ||d outputs / d inputs||_F, by central
// differences in double.
double input_jacobian(const CollapsedNetwork& network, std::span<const double> x, int64_t samples);

}  // namespace posattn::bounds

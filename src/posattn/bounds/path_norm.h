// The path norm of a collapsed network: the root of the sum, over all paths from an input, an
// offset or a position to an output, of the squared product of the weights along it.
#pragma once

#include "posattn/bounds/collapsed_network.h"

namespace posattn::bounds {

// As a natural logarithm. Attention counts as an average, which it is whatever its scores: a path
// through it has the factor 1, so that the norm is defined for attention from data too. Paths from
// a standard network's positions are averaged over the nodes.
double log_path_norm(const CollapsedNetwork& network);

}  // namespace posattn::bounds

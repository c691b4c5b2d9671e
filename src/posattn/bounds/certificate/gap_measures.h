// Numbers that are said to go with the generalisation gap, for comparison with what a certificate
// says: which of them orders runs as their gaps do? (scripts/gap_ranking.py)
#pragma once

#include <cstdint>
#include <span>

#include "posattn/bounds/collapsed_network.h"
#include "posattn/model/parameters.h"

namespace posattn::bounds {

// Euclidean, of all weights.
double distance_between(const Parameters<float>& a, const Parameters<float>& b);

// ln of the sum over all paths from an input or an offset to an output of the product of the
// absolute weights along it, in the collapsed network; rows of attention sum to 1.
double log_path_norm(const CollapsedNetwork& network);

// The mean over samples [samples, real nodes] of the Frobenius norm of df/dx, by differences.
double mean_jacobian_norm(const CollapsedNetwork& network, std::span<const float> inputs,
                          int64_t samples);

}  // namespace posattn::bounds

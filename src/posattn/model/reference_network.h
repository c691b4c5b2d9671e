// The oracle: the plan in plain double loops (plan/block_network.h), compared with and never used
// for speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/batch.h"
#include "posattn/model/parameters.h"
#include "posattn/model/spec.h"

namespace posattn {

std::vector<double> reference_forward(const ModelSpec& spec, const Parameters<double>& parameters,
                                      const ReferenceBatch& batch);

// Returns the loss and overwrites `gradient`; loss and mask as in Network::gradient.
double reference_gradient(const ModelSpec& spec, const Parameters<double>& parameters,
                          const ReferenceBatch& batch, std::span<const uint8_t> mask,
                          Parameters<double>& gradient);

// Attention of one sample, [depth, heads, nodes, nodes].
std::vector<double> reference_attention(const ModelSpec& spec, const Parameters<double>& parameters,
                                        const ReferenceBatch& one_sample);

}  // namespace posattn

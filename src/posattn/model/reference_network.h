// The oracle: the same model in plain double loops, written to be read beside the paper's formulas
// and compared with (never used for speed).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/parameters.h"
#include "posattn/model/spec.h"

namespace posattn {

struct ReferenceBatch {
  const double* inputs = nullptr;   // [samples, real_nodes, data_columns]
  const double* targets = nullptr;  // [samples, real_nodes, output_columns]
  int64_t samples = 0;
  int real_nodes = 0;
};

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

// The states of all layers for one sample, for looking inside a network. They are computed in fp32
// as the architecture is written: slower than the engines, with the same numbers up to rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/batch.h"
#include "posattn/model/parameters.h"
#include "posattn/model/spec.h"

namespace posattn {

struct Activations {
  int nodes = 0, width = 0;    // of nodes the real ones, then the scratch nodes
  std::vector<float> states;   // [depth + 1, nodes, width]: encoded, then after each layer
  std::vector<float> outputs;  // [real_nodes, output_columns]

  float state(int layers, int node, int column) const {
    return states[(int64_t{1} * layers * nodes + node) * width + column];
  }
};

// Throws as check_batch does.
Activations activations_of(const ModelSpec& spec, const Parameters<float>& parameters,
                           const Batch& one_sample);

}  // namespace posattn

// The interface that computes outputs of samples: the CPU engine (network.h) or a GPU
// (device_network.h).
#pragma once

#include <span>

#include "posattn/model/batch.h"
#include "posattn/model/parameters.h"

namespace posattn {

class ForwardPass {
 public:
  virtual ~ForwardPass() = default;

  // outputs [samples, real_nodes, output_columns]
  virtual void forward(const Parameters<float>& parameters, const Batch& batch,
                       std::span<float> outputs) = 0;
};

}  // namespace posattn

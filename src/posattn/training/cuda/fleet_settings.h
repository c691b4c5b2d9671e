// What a fleet's sizes follow from. For .cu files.
#pragma once

#include <algorithm>
#include <cstdint>

#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/training/run_config.h"

namespace posattn::cuda {

constexpr int state_parts = 3;  // weights, first and second moments

// Samples that tests and validation compute at once. Kernels are chosen by their number, so it must
// be the same for all runs of a fleet (see compatible).
inline int64_t tested_at_once(const RunConfig& config) {
  return std::min<int64_t>(1024, std::max(config.test_samples, config.validation_samples));
}

inline FleetShape fleet_shape(const RunConfig& config, std::size_t slots) {
  FleetShape shape;
  shape.spec = model_spec(config);
  shape.slots = static_cast<int>(slots);
  shape.batch = config.batch;
  shape.precision = config.precision == "tf32" ? Precision::tf32 : Precision::fp32;
  return shape;
}

}  // namespace posattn::cuda

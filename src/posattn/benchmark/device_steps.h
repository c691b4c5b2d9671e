// How long a fleet's training step takes on the GPU.
#pragma once

#include <string>

#include "posattn/benchmark/steps.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct DeviceTiming {
  std::string engine;  // "general", "fused-positional", ...
  int seeds = 0;
  Timing step;               // of all seeds together, in seconds
  double nominal_flops = 0;  // of that step, as the architecture is written
  double microseconds_per_seed() const { return step.median * 1e6 / seeds; }
  double gflops() const { return nominal_flops / step.median / 1e9; }
};

// Trains `seeds` runs of this configuration in lockstep for about `seconds`, the same epoch
// again and again. Throws Error(device) where there is no usable GPU, or too little memory.
DeviceTiming time_device_steps(RunConfig config, int seeds, double seconds);

// Measures the GPU's limits, with which a step's time is compared.
struct DeviceCeilings {
  double copy_bytes = 0;    // bytes read plus written per second, device memory to device memory
  double tensor_flops = 0;  // per second, tf32 products by mma.sync, nothing else running
  double fp32_flops = 0;    // per second, fused multiply-adds
};

// Throws Error(device) where there is no usable GPU.
DeviceCeilings measure_device_ceilings();

}  // namespace posattn

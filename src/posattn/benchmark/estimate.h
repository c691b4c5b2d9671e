// How long runs will take on this machine, from a short measurement of the paper's two models and
// the nominal work of each run.
#pragma once

#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

struct MachineSpeed {
  // Nominal flops per second of training: attention from positions, attention from the data.
  double from_positions = 0, from_data = 0;
};

// Takes about two seconds. On the GPU: of fleets of ten runs.
MachineSpeed measure_speed(const std::string& device, const std::string& precision, int threads);

double estimated_seconds(const std::vector<RunConfig>& runs, const MachineSpeed& speed);

}  // namespace posattn

// Runs trained by the CUDA engine in their folders: which of them share a fleet, how many fit into
// the GPU's memory at once, and what is recorded of each while the GPU goes on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "posattn/training/fleet_folders.h"

namespace posattn {

// Trains the runs and writes outcomes[place]. options.progress is called by one thread at a time.
// Throws Error(device), before anything is written, where not even one run fits into the memory,
// and when the GPU fails on the way (the runs are then recorded as failed).
void train_on_device(const std::vector<FolderRun>& runs, const FleetOptions& options,
                     std::vector<RunOutcome>& outcomes);

// A run on its way: how many of its epochs it has.
struct PlannedRun {
  const RunConfig* config = nullptr;
  int64_t epoch = 0;
};

// Places of runs that are trained together, one list per wave, in order: runs of one wave may share
// a fleet, have about as much left to do and fit into `bytes_free`. `notice` is told of those that
// need several waves for lack of memory.
std::vector<std::vector<std::size_t>> plan_waves(
    const std::vector<PlannedRun>& planned, int64_t bytes_free,
    const std::function<void(const std::string&)>& notice);

}  // namespace posattn

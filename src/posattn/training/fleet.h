// Several independent runs (seeds x architectures) that share the machine. A run's result does not
// depend on the fleet: the threads it gets, and on the GPU the other runs, change its speed,
// never its bits.
#pragma once

#include <atomic>

#include "posattn/training/recording.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct FleetOptions {
  std::filesystem::path out;  // runs go to out/ARCHITECTURE-seedS
  // Where a run goes instead; not by device, which is chosen when its folder is known.
  std::function<std::filesystem::path(const RunConfig&)> folder;
  bool resume = false;
  int threads = 1;
  int64_t device_memory = 0;                // bytes of the GPU's memory to use; 0: all that is free
  std::string command_line;                 // for the manifest
  const std::atomic<bool>* stop = nullptr;  // set: checkpoint every run and return
  std::function<void(const RunProgress&)> progress;  // called by one thread at a time
  std::function<void(const std::string&)> notice;    // a line for the user
};

// out/ARCHITECTURE-seedS
std::filesystem::path run_folder_path(const std::filesystem::path& out, const RunConfig& config);

// `config` with the device and the precision it is trained with in the place of "auto": when
// resuming those its folder names, else what device_used and precision_used say.
RunConfig with_device(RunConfig config, const FleetOptions& options);

// Validates every configuration and takes every folder first (throwing before anything is trained),
// then trains. A run that diverges or fails (a full disk) is recorded and the others go on.
// Outcomes are in the order of `configs`; a run that `stop` kept from starting is "interrupted".
std::vector<RunOutcome> train_fleet(const std::vector<RunConfig>& configs,
                                    const FleetOptions& options);

}  // namespace posattn

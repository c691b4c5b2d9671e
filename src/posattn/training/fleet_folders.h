// The folders of a fleet's runs: all are taken before anything is trained, and those of runs that
// never started are removed, however training ends.
#pragma once

#include <cstddef>
#include <mutex>

#include "posattn/results/run_folder.h"
#include "posattn/training/fleet.h"

namespace posattn {

std::filesystem::path folder_of(const RunConfig& config, const FleetOptions& options);

class FleetFolders {
 public:
  // Throws for an invalid configuration, one that comes twice, and a folder that cannot be taken;
  // folders made until then are removed.
  FleetFolders(const std::vector<RunConfig>& configs, const FleetOptions& options);
  ~FleetFolders();
  FleetFolders(const FleetFolders&) = delete;
  FleetFolders& operator=(const FleetFolders&) = delete;

  RunFolder& operator[](std::size_t run) { return folders_[run]; }

 private:
  void remove_unused() const;

  std::vector<RunFolder> folders_;
};

// A run of a fleet's list, and its place in it.
struct FolderRun {
  std::size_t place = 0;
  const RunConfig* config = nullptr;
  RunFolder* folder = nullptr;
};

// What the run's recording needs to know of its fleet: the command line, and where progress and
// notices go. `calls` is held while options.progress or options.notice is called.
RecordingOptions recording_options(const FolderRun& run, const FleetOptions& options,
                                   const char* device, std::mutex& calls);

// Runs trained by the CUDA engine in their folders: which of them share a fleet, how many fit into
// the GPU's memory at once, and what is recorded of each while the GPU goes on.

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

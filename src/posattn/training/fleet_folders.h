// The folders of a fleet's runs: all are taken before anything is trained, and those of runs that
// never started are removed, however training ends.
#pragma once

#include <filesystem>
#include <mutex>
#include <vector>

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

}  // namespace posattn

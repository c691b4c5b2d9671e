// The folders of a fleet's runs: all are taken before anything is trained, and those of runs that
// never started are removed, however training ends.
#pragma once

#include <filesystem>
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

}  // namespace posattn

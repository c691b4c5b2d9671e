// Who trains the runs of a grid, where the runner's own process does not.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/results/results_database.h"
#include "posattn/training/fleet.h"

namespace posattn {

class Trainer {
 public:
  virtual ~Trainer() = default;
  // Like train_fleet, in the folders that it would take. Called once, with all missing runs.
  virtual std::vector<RunOutcome> train(const std::vector<RunConfig>& configs,
                                        const FleetOptions& options) = 0;
  // Of a run that ended, from the moment at which options.progress says so.
  virtual RunResult result(const std::filesystem::path& folder, const std::string& key) = 0;
};

}  // namespace posattn

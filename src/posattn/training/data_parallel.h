// Runs that several ranks train together, one after the other (data_parallel_steps.h). Rank 0 alone
// has folders: it reads and writes checkpoints, metrics and models; the others get the first state
// from it. Data, which follow from the seeds, are made by every rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "posattn/mpi/ranks.h"
#include "posattn/training/fleet.h"

namespace posattn {

class DataParallelRun;
class FleetFolders;

class DataParallelFleet {
 public:
  // Collective. Rank 0 takes the folders and chooses device and precision for all; throws as
  // train_fleet does, and where a rank does not have that device. `options.threads` are those of
  // this rank; progress and notices are for rank 0.
  DataParallelFleet(std::vector<RunConfig> configs, FleetOptions options, Ranks& ranks);
  ~DataParallelFleet();

  const std::string& device() const { return configs_.front().device; }

  // Collective. The outcomes on rank 0, none elsewhere. What happens to the files of a run is an
  // outcome; what keeps a rank from computing ends the job.
  std::vector<RunOutcome> train();

 private:
  RunOutcome lead(std::size_t run);
  void follow(const RunConfig& config);
  void say_stopping(const DataParallelRun& run) const;

  std::vector<RunConfig> configs_;
  FleetOptions options_;
  Ranks& ranks_;
  std::unique_ptr<FleetFolders> folders_;
};

}  // namespace posattn

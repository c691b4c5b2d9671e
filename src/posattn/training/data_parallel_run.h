// One run as a rank of several trains it (data_parallel_steps.h), on its CPU or its GPU: what Run
// is for one process. The first rank alone validates and tests.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "posattn/training/data_parallel_steps.h"
#include "posattn/training/run.h"

namespace posattn {

class DataParallelRun {
 public:
  virtual ~DataParallelRun() = default;
  DataParallelRun(const DataParallelRun&) = delete;
  DataParallelRun& operator=(const DataParallelRun&) = delete;

  virtual std::map<std::string, std::string> engine() const = 0;  // for the manifest
  virtual int64_t steps_per_epoch() const = 0;
  virtual bool finished() const = 0;
  virtual const std::string& divergence() const = 0;
  virtual const RunState& state() const = 0;  // after the last completed epoch
  // Collective, as Run::advance_epoch: nothing too where another rank has stopped.
  virtual std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop) = 0;

 protected:
  DataParallelRun() = default;
};

// Goes on from `state`. config.device is "cpu" or "cuda".
std::unique_ptr<DataParallelRun> make_data_parallel_run(const RunConfig& config, int threads,
                                                        RunState state, DataParallelSteps& steps);

}  // namespace posattn

// Samples of the next epoch for runs that train on fresh ones: made by host threads while the GPU
// is at work on the present epoch.
#pragma once

#include <algorithm>
#include <future>
#include <vector>

#include "posattn/training/device_fleet.h"
#include "posattn/training/run_parts.h"

namespace posattn::cuda {

class FreshSamples {
 public:
  // `threads` are shared by the runs.
  FreshSamples(const std::vector<DeviceRun>& runs, int threads)
      : threads_(std::max(1, threads / static_cast<int>(runs.size()))), next_(runs.size()) {
    for (const DeviceRun& run : runs) configs_.push_back(run.config);
  }

  // Begins to make a run's samples of an epoch.
  void prepare(int slot, int64_t epoch) {
    const RunConfig& config = configs_[slot];
    if (!config.fresh || epoch > config.epochs) return;
    next_[slot] = std::async(std::launch::async, [config, epoch, threads = threads_] {
      return training_data(config, epoch, threads);
    });
  }

  // What was prepared for a run, if anything was.
  bool has(int slot) const { return next_[slot].valid(); }
  std::vector<Dataset> take(int slot) { return next_[slot].get(); }

 private:
  int threads_;
  std::vector<RunConfig> configs_;
  std::vector<std::future<std::vector<Dataset>>> next_;
};

}  // namespace posattn::cuda

#include "posattn/training/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "posattn/base/watch.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/training/fleet_folders.h"

namespace posattn {
namespace {

// Thrown from inside a run when the fleet is stopped.
struct Stopped {};

// Runs on the CPU: whole runs per thread.
class CpuFleet {
 public:
  CpuFleet(const std::vector<FolderRun>& runs, const FleetOptions& options,
           std::vector<RunOutcome>& outcomes)
      : runs_(runs),
        options_(options),
        outcomes_(outcomes),
        threads_(std::max(1, options.threads)),
        active_(std::min(runs.size(), static_cast<std::size_t>(threads_)), true) {}

  void train() {
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < active_.size(); ++worker) {
      workers.emplace_back([this, worker] { work(worker); });
    }
  }

 private:
  // Takes runs from the queue until it is empty; then the other workers get this one's threads.
  void work(std::size_t worker) {
    for (std::size_t next = next_++; next < runs_.size(); next = next_++) {
      const FolderRun& run = runs_[next];
      Recording recording(*run.config, *run.folder,
                          recording_options(run, options_, "cpu", mutex_));
      try {
        train(*run.config, worker, recording);
      } catch (const std::exception& error) {
        recording.fail(error);
      }
      outcomes_[run.place] = recording.outcome();
    }
    const std::lock_guard lock(mutex_);
    active_[worker] = false;
  }

  void train(const RunConfig& config, std::size_t worker, Recording& recording) {
    if (recording.ended_before()) return;
    const auto stopped = [&] {
      return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
    };
    if (stopped()) return recording.interrupt_before_start();
    std::optional<Run> run;
    try {
      const Watch watch([&] {
        if (stopped()) throw Stopped();
      });
      run.emplace(config, share_of(worker), recording.start());  // makes the data
      recording.begin(run->state(), run->steps_per_epoch());
      while (!run->finished() && !stopped()) {
        run->set_threads(share_of(worker));
        const std::optional<EpochRecord> record = run->advance_epoch(options_.stop);
        if (!record) break;
        recording.record_epoch(*record);
        if (recording.checkpoint_due()) recording.checkpoint(run->state());
      }
    } catch (const Stopped&) {
      if (!run) return recording.interrupt_before_start();
    }
    recording.finish(run->state(), run->divergence());
  }

  // The threads divided among the active workers, what remains to the first of them.
  int share_of(std::size_t worker) {
    const std::lock_guard lock(mutex_);
    const auto active = static_cast<int>(std::count(active_.begin(), active_.end(), true));
    const auto before = static_cast<int>(
        std::count(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(worker), true));
    return threads_ / active + (before < threads_ % active ? 1 : 0);
  }

  const std::vector<FolderRun>& runs_;
  const FleetOptions& options_;
  std::vector<RunOutcome>& outcomes_;
  int threads_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::vector<bool> active_;  // by worker; guarded by mutex_
};

}  // namespace

std::filesystem::path run_folder_path(const std::filesystem::path& out, const RunConfig& config) {
  return out / fmt::format("{}-seed{}", config.architecture, config.seed);
}

RunConfig with_device(RunConfig config, const FleetOptions& options) {
  const std::filesystem::path file = folder_of(config, options) / "config.toml";
  if (options.resume && std::filesystem::is_regular_file(file)) {
    const RunConfig recorded = read_config_file(file).config;
    if (config.device == "auto") {
      config.device = recorded.device == "auto" ? "cpu" : recorded.device;  // there was no other
    }
    if (config.precision == "auto") config.precision = recorded.precision;
  }
  config.device = device_used(config);
  config.precision = precision_used(config);
  return config;
}

std::vector<RunOutcome> train_fleet(const std::vector<RunConfig>& wanted,
                                    const FleetOptions& options) {
  blas_info();  // refuses a library that is not thread-safe before anything is written
  std::vector<RunConfig> configs;
  configs.reserve(wanted.size());
  for (const RunConfig& config : wanted) configs.push_back(with_device(config, options));
  FleetFolders folders(configs, options);
  std::vector<FolderRun> on_cpu, on_device;
  for (std::size_t run = 0; run < configs.size(); ++run) {
    (configs[run].device == "cuda" ? on_device : on_cpu)
        .push_back({run, &configs[run], &folders[run]});
  }
  std::vector<RunOutcome> outcomes(configs.size());
  if (!on_device.empty()) train_on_device(on_device, options, outcomes);
  if (!on_cpu.empty()) CpuFleet(on_cpu, options, outcomes).train();
  return outcomes;
}

}  // namespace posattn

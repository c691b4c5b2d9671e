#include "posattn/training/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"

namespace posattn {
namespace {

std::vector<RunFolder> take_folders(const std::vector<RunConfig>& configs,
                                    const FleetOptions& options) {
  std::set<std::filesystem::path> paths;
  for (const RunConfig& config : configs) {
    validate(config);
    if (!paths.insert(run_folder_path(options.out, config)).second) {
      throw Error(ExitCode::usage,
                  fmt::format("architecture '{}' with seed {} is asked for twice",
                              config.architecture, config.seed),
                  "each run once");
    }
  }
  std::vector<RunFolder> folders;
  folders.reserve(configs.size());
  for (const RunConfig& config : configs) {
    folders.emplace_back(run_folder_path(options.out, config), to_json(config),
                         result_neutral_keys(), options.resume);
  }
  return folders;
}

class Fleet {
 public:
  Fleet(const std::vector<RunConfig>& configs, const FleetOptions& options)
      : configs_(configs),
        options_(options),
        threads_(std::max(1, options.threads)),
        folders_(take_folders(configs, options)),
        outcomes_(configs.size()),
        active_(std::min(configs.size(), static_cast<std::size_t>(threads_)), true) {}

  std::vector<RunOutcome> train() {
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < active_.size(); ++worker) {
      workers.emplace_back([this, worker] { work(worker); });
    }
    workers.clear();  // joins
    for (const RunFolder& folder : folders_) folder.remove_if_unused();
    return std::move(outcomes_);
  }

 private:
  // Takes runs from the queue until it is empty; then the other workers get this one's threads.
  void work(std::size_t worker) {
    for (std::size_t run = next_++; run < configs_.size(); run = next_++) {
      RecordingOptions recording;
      recording.command_line = options_.command_line;
      recording.stop = options_.stop;
      recording.threads = [this, worker] { return share_of(worker); };
      recording.progress = [this, run](RunProgress progress) {
        progress.run = run;
        const std::lock_guard lock(mutex_);
        if (options_.progress) options_.progress(progress);
      };
      outcomes_[run] = train_in_folder(configs_[run], folders_[run], recording);
    }
    const std::lock_guard lock(mutex_);
    active_[worker] = false;
  }

  // The threads divided among the active workers, what remains to the first of them.
  int share_of(std::size_t worker) {
    const std::lock_guard lock(mutex_);
    const auto active = static_cast<int>(std::count(active_.begin(), active_.end(), true));
    const auto before = static_cast<int>(
        std::count(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(worker), true));
    return threads_ / active + (before < threads_ % active ? 1 : 0);
  }

  const std::vector<RunConfig>& configs_;
  const FleetOptions& options_;
  int threads_;
  std::vector<RunFolder> folders_;
  std::vector<RunOutcome> outcomes_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::vector<bool> active_;  // by worker; guarded by mutex_
};

}  // namespace

std::filesystem::path run_folder_path(const std::filesystem::path& out, const RunConfig& config) {
  return out / fmt::format("{}-seed{}", config.architecture, config.seed);
}

std::vector<RunOutcome> train_fleet(const std::vector<RunConfig>& configs,
                                    const FleetOptions& options) {
  blas_info();  // refuses a library that is not thread-safe before anything is written
  return Fleet(configs, options).train();
}

}  // namespace posattn

#include "posattn/training/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/results/settings_difference.h"
#include "posattn/training/device_training.h"
#include "posattn/training/recorded_run.h"
#include "posattn/training/start.h"

namespace posattn {
namespace {

std::filesystem::path folder_of(const RunConfig& config, const FleetOptions& options) {
  return options.folder ? options.folder(config) : run_folder_path(options.out, config);
}

// A run may go on to more epochs than it was started for.
void check_epochs(const RunConfig& config, const RunFolder& folder) {
  if (!folder.previous()) return;
  const std::string name = folder.manifest().string() + ": configuration";
  const nlohmann::json settings = read_settings(folder.previous()->configuration, name);
  const int64_t before = JsonFields(settings, name).integer("epochs");
  if (config.epochs < before) {
    throw Error(ExitCode::configuration,
                fmt::format("folder '{}' holds a run of {} epochs, {} are asked for",
                            folder.path().string(), before, config.epochs),
                fmt::format("at least {}", before), "choose another --out");
  }
  if (config.epochs > before && !can_be_extended(config)) {
    throw Error(
        ExitCode::configuration,
        fmt::format("folder '{}' holds a run of {} epochs, whose schedule {} ends there",
                    folder.path().string(), before, config.schedule),
        fmt::format("{} epochs; or a schedule that does not depend on their number", before),
        "choose another --out");
  }
}

// A run without a checkpoint reads the file that it starts from; it must be the right one.
void check_start(const RunConfig& config, const std::filesystem::path& folder) {
  if (config.from.empty() || std::filesystem::exists(folder / "checkpoint.safetensors")) return;
  start_parameters(config);
}

std::vector<RunFolder> take_folders(const std::vector<RunConfig>& configs,
                                    const FleetOptions& options) {
  std::set<std::filesystem::path> paths;
  for (const RunConfig& config : configs) {
    validate(config);
    check_start(config, folder_of(config, options));
    if (!paths.insert(folder_of(config, options)).second) {
      throw Error(ExitCode::usage,
                  fmt::format("architecture '{}' with seed {} is asked for twice",
                              config.architecture, config.seed),
                  "each run once");
    }
  }
  std::vector<std::string> may_differ = result_neutral_keys();
  may_differ.emplace_back("epochs");
  std::vector<RunFolder> folders;
  folders.reserve(configs.size());
  for (const RunConfig& config : configs) {
    folders.emplace_back(folder_of(config, options), to_json(config), may_differ, options.resume);
    check_epochs(config, folders.back());
  }
  return folders;
}

// Removes the folders of runs that never started, however training ends.
class FolderCleaner {
 public:
  explicit FolderCleaner(const std::vector<RunFolder>& folders) : folders_(folders) {}
  ~FolderCleaner() {
    for (const RunFolder& folder : folders_) folder.remove_if_unused();
  }
  FolderCleaner(const FolderCleaner&) = delete;
  FolderCleaner& operator=(const FolderCleaner&) = delete;

 private:
  const std::vector<RunFolder>& folders_;
};

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
      RecordedRunOptions run_options;
      run_options.recording.command_line = options_.command_line;
      run_options.recording.engine = {{"path", run.config->path}, {"device", "cpu"}};
      run_options.recording.progress = [this, &run](RunProgress progress) {
        progress.run = run.place;
        const std::lock_guard lock(mutex_);
        if (options_.progress) options_.progress(progress);
      };
      run_options.stop = options_.stop;
      run_options.threads = [this, worker] { return share_of(worker); };
      outcomes_[run.place] = train_in_folder(*run.config, *run.folder, run_options);
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
  if (options.resume && std::filesystem::exists(file)) {
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
  std::vector<RunFolder> folders = take_folders(configs, options);
  const FolderCleaner cleaner(folders);
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

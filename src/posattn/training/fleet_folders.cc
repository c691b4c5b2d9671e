#include "posattn/training/fleet_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/results/manifest.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

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

void check_configs(const std::vector<RunConfig>& configs, const FleetOptions& options) {
  std::set<std::filesystem::path> paths;
  for (const RunConfig& config : configs) {
    validate(config);
    const std::filesystem::path folder = folder_of(config, options);
    // A run without a checkpoint reads the file that it starts from; it must be the right one.
    if (!config.from.empty() && !std::filesystem::exists(folder / "checkpoint.safetensors")) {
      start_parameters(config);
    }
    if (!paths.insert(folder).second) {
      throw Error(ExitCode::usage,
                  fmt::format("architecture '{}' with seed {} is asked for twice",
                              config.architecture, config.seed),
                  "each run once");
    }
  }
}

// The lock of every folder is held while the fleet trains, and its threads open files meanwhile.
// Whether the system allows so many shows by trying.
void check_open_files(std::size_t runs, int threads) {
  constexpr std::size_t spare = 16;
  const std::size_t needed = runs + static_cast<std::size_t>(std::max(1, threads)) + spare;
  std::vector<int> opened;
  int problem = 0;
  while (opened.size() < needed && problem == 0) {
    const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      problem = errno;
    } else {
      opened.push_back(descriptor);
    }
  }
  for (const int descriptor : opened) ::close(descriptor);
  if (problem != EMFILE && problem != ENFILE) return;
  throw Error(ExitCode::failed,
              fmt::format("{} runs at once: only {} more files can be open", runs, opened.size()),
              fmt::format("room for {}", needed),
              "raise the limit of open files (ulimit -n), or train fewer seeds at once");
}

}  // namespace

std::filesystem::path folder_of(const RunConfig& config, const FleetOptions& options) {
  return options.folder ? options.folder(config) : run_folder_path(options.out, config);
}

RecordingOptions recording_options(const FolderRun& run, const FleetOptions& options,
                                   const char* device, std::mutex& calls) {
  RecordingOptions recording;
  recording.command_line = options.command_line;
  recording.engine = {{"path", run.config->path}, {"device", device}};
  recording.progress = [&options, &calls, place = run.place](RunProgress state) {
    state.run = place;
    const std::lock_guard lock(calls);
    if (options.progress) options.progress(state);
  };
  recording.notice = [&options, &calls](const std::string& line) {
    const std::lock_guard lock(calls);
    if (options.notice) options.notice(line);
  };
  return recording;
}

FleetFolders::FleetFolders(const std::vector<RunConfig>& configs, const FleetOptions& options) {
  check_configs(configs, options);
  check_open_files(configs.size(), options.threads);
  std::vector<std::string> may_differ = result_neutral_keys();
  may_differ.emplace_back("epochs");
  folders_.reserve(configs.size());
  try {
    for (const RunConfig& config : configs) {
      folders_.emplace_back(folder_of(config, options), to_json(config), may_differ,
                            options.resume);
      check_epochs(config, folders_.back());
    }
  } catch (...) {
    remove_unused();
    throw;
  }
}

FleetFolders::~FleetFolders() { remove_unused(); }

void FleetFolders::remove_unused() const {
  for (const RunFolder& folder : folders_) folder.remove_if_unused();
}

}  // namespace posattn

// What `posattn train` was asked to do: defaults, then --config, then flags, then --set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/training/run_config.h"

namespace CLI {
class App;
}  // namespace CLI

namespace posattn {

struct TrainSettings {
  std::vector<std::pair<std::string, std::string>> flags;  // fields given on the command line
  std::vector<std::string> assignments;                    // --set key=value
  std::string config_file, seeds, out;
  int threads = 0;
  bool resume = false, dry_run = false, json = false;
};

// One flag per field of RunConfig, in the groups of its sections; those given land in
// settings.flags.
void add_config_flags(CLI::App& command, TrainSettings& settings);

// One configuration per architecture and seed, in that order.
std::vector<RunConfig> collect_configs(const TrainSettings& settings);

// The configuration file that collect_configs reads back as these runs.
ConfigFile as_config_file(const std::vector<RunConfig>& configs);

// --out, or runs/TASK.
std::filesystem::path output_folder(const TrainSettings& settings,
                                    const std::vector<RunConfig>& configs);

}  // namespace posattn

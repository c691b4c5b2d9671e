#include "posattn/cli/train_settings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/model/gpt2/gpt2_weights.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/training/start.h"

namespace posattn {
namespace {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// What the task suggests, where neither the command line nor the file says anything.
void suggest(const Task& task, const std::set<std::string>& given, ConfigFile& base) {
  if (base.complete) return;
  for (const auto& [key, value] : task.settings()) {
    if (!given.contains(key) && !base.named.contains(key)) set_field(base.config, key, value);
  }
}

// --from takes what `evaluate` and the others take: a model file, or the folder of a run; and the
// folder of a GPT-2.
void start_from(RunConfig& config, const std::set<std::string>& named) {
  std::error_code ignored;
  if (std::filesystem::is_directory(config.from, ignored) && !is_gpt2_folder(config.from)) {
    config.from = find_model(config.from).string();
  }
  take_start(config, named);
}

}  // namespace

void add_config_flags(CLI::App& command, TrainSettings& settings) {
  for (const FieldInfo& field : config_fields()) {
    const std::string name = "--" + field.name;
    const auto keep = [&settings, key = field.name](const std::string& value) {
      settings.flags.emplace_back(key, value);
    };
    const std::string help = field.accepts.empty() ? field.help : field.help + "; " + field.accepts;
    CLI::Option* option = nullptr;
    if (field.type == "flag") {
      option = command.add_flag(name, help)->each(keep);
    } else {
      option = command.add_option_function<std::string>(name, keep, help);
      std::string text = field.type == "text" ? "TEXT" : field.type == "integer" ? "INT" : "NUMBER";
      if (!field.default_value.empty()) text += " [" + field.default_value + "]";
      option->option_text(text);
    }
    option->group(capitalised(field.section));
  }
}

std::vector<RunConfig> collect_configs(const TrainSettings& settings) {
  ConfigFile base;
  if (!settings.config_file.empty()) base = read_config_file(settings.config_file);
  std::set<std::string> given;  // on the command line
  for (const auto& [key, value] : settings.flags) {
    set_field(base.config, key, value, fmt::format("in --{}", key), ExitCode::usage);
    given.insert(key);
  }
  for (const std::string& assignment : settings.assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      throw Error(ExitCode::usage, fmt::format("--set '{}' has no value", assignment),
                  "--set key=value", "posattn train --set lr=0.001");
    }
    const std::string key = assignment.substr(0, equals);
    set_field(base.config, key, assignment.substr(equals + 1), "in --set", ExitCode::usage);
    given.insert(key);
  }
  if (is_gpt2_folder(base.config.from)) {
    offer_gpt2_tasks(base.config.from);
    if (!given.contains("task") && !base.named.contains("task")) {
      base.config.task = "mixed-min-gpt2";
    }
  }
  if (!settings.config_file.empty() && !given.contains("task")) {
    task_named_in(settings.config_file, base.config.task);
  }
  suggest(find_task(base.config.task), given, base);
  const bool seed_given = given.contains("seed");
  if (seed_given && !settings.seeds.empty()) {
    throw Error(ExitCode::usage, "both --seed and --seeds are given", "one of them");
  }
  // What the command line says about seeds replaces what the file says, in either form.
  std::vector<uint64_t> seeds = {static_cast<uint64_t>(base.config.seed)};
  if (!settings.seeds.empty()) {
    seeds = parse_seeds(settings.seeds);
  } else if (!seed_given && base.seeds) {
    seeds = parse_seeds(*base.seeds);
  }
  // The hash in the configuration file belongs to its own `from`, not to another one.
  if (given.contains("from") && !given.contains("from-hash")) base.config.from_hash.clear();
  base.named.merge(given);
  std::vector<RunConfig> configs;
  for (const std::string& architecture : split_architectures(base.config.architecture)) {
    RunConfig config = base.config;
    config.architecture = architecture;
    if (!config.from.empty()) start_from(config, base.named);
    for (const uint64_t seed : seeds) {
      config.seed = static_cast<int64_t>(seed);
      configs.push_back(config);
    }
  }
  return configs;
}

ConfigFile as_config_file(const std::vector<RunConfig>& configs) {
  const RunConfig& first = configs.front();
  ConfigFile file{first, {}};
  std::string seeds;
  for (const RunConfig& config : configs) {  // every architecture with every seed, in that order
    if (config.architecture == first.architecture) {
      seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", config.seed);
    }
    if (config.seed == first.seed && config.architecture != first.architecture) {
      file.config.architecture += "," + config.architecture;
    }
  }
  if (seeds.find(',') != std::string::npos) file.seeds = seeds;
  return file;
}

std::filesystem::path output_folder(const TrainSettings& settings,
                                    const std::vector<RunConfig>& configs) {
  if (is_standard_output(settings.out)) {
    throw Error(ExitCode::usage, "--out -", "a folder: runs are several files", "./- names one");
  }
  if (!settings.out.empty()) return settings.out;
  return std::filesystem::path("runs") / configs.front().task;
}

}  // namespace posattn

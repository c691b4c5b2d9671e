#include "posattn/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/experiments/embedded.h"

namespace posattn {
namespace {

// The order of the documentation; embedded experiments that are not named here follow by name.
constexpr std::string_view documented[] = {"value-range",     "sample-count",   "input-length",
                                           "variable-length", "small-standard", "encodings",
                                           "variants",        "accuracy"};

std::optional<std::string_view> embedded_text(const std::string& name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name + ".toml") return file.text;
  }
  return {};
}

// FNV-1a: keys must be the same on every machine.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// "m0" and "standard" are one architecture: their runs are the same.
std::string plain_architecture(const RunConfig& config) {
  ModelSpec spec;
  apply_preset(config.architecture, spec);
  return preset_name(spec);
}

// An experiment's name becomes a folder among what a results folder holds.
void check_folder_name(const std::string& name, const std::filesystem::path& file) {
  constexpr std::string_view taken[] = {"runs", "results.db", "lock", "report.html"};
  if (!name.starts_with('.') && std::ranges::find(taken, name) == std::end(taken)) return;
  throw Error(ExitCode::configuration, fmt::format("an experiment named '{}'", name),
              "a name that a results folder does not use itself",
              fmt::format("rename {}", file.string()));
}

}  // namespace

std::string_view to_string(Metric metric) { return metric == Metric::mse ? "mse" : "accuracy"; }

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    constexpr std::string_view suffix = ".toml";
    if (file.name.ends_with(suffix)) {
      names.emplace_back(file.name.substr(0, file.name.size() - suffix.size()));
    }
  }
  const auto place = [](const std::string& name) {
    return std::ranges::find(documented, name) - std::begin(documented);
  };
  std::ranges::stable_sort(names, {}, place);
  return names;
}

Experiment load_experiment(const std::string& name_or_file, const ExperimentChanges& changes) {
  if (const auto text = embedded_text(name_or_file)) {
    return read_experiment(*text, name_or_file, name_or_file + ".toml", changes);
  }
  const std::filesystem::path path(name_or_file);
  std::error_code ignored;
  if (path.extension() != ".toml" && !std::filesystem::is_regular_file(path, ignored)) {
    throw unknown_name(ExitCode::usage, "experiment", name_or_file, experiment_names());
  }
  const std::string name = path.stem().string();
  check_folder_name(name, path);
  constexpr uint64_t largest = 1 << 20;
  return read_experiment(read_text_file(path, largest), name, path.string(), changes);
}

std::string run_key(const RunConfig& config) {
  nlohmann::json settings = nlohmann::json::parse(to_json(config));
  for (const std::string& key : result_neutral_keys()) settings.erase(key);
  settings.erase("device");
  return fmt::format("{}-{}-seed{}-{:016x}", config.task, config.architecture, config.seed,
                     hash_of(settings.dump()));
}

std::vector<ExperimentRun> runs_of(const Experiment& experiment) {
  std::vector<std::optional<double>> places = {std::nullopt};
  if (!experiment.axis.is_scale()) {
    places.assign(experiment.axis.values.begin(), experiment.axis.values.end());
  }
  std::vector<ExperimentRun> runs;
  for (const std::string& task : experiment.tasks) {
    for (const std::optional<double> x : places) {
      for (const ExperimentLine& line : experiment.lines) {
        ExperimentRun run{task, line.name, x, experiment.settings, {}};
        run.config.task = task;
        for (const auto& [key, value] : line.settings) set_field(run.config, key, value);
        if (x) set_field(run.config, experiment.axis.key, fmt::format("{}", *x));
        run.config.architecture = plain_architecture(run.config);
        for (const uint64_t seed : experiment.seeds) {
          run.config.seed = static_cast<int64_t>(seed);
          run.key = run_key(run.config);
          runs.push_back(run);
        }
      }
    }
  }
  return runs;
}

}  // namespace posattn

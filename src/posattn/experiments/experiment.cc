#include "posattn/experiments/experiment.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/base/hash.h"
#include "posattn/base/text.h"
#include "posattn/base/toml.h"
#include "posattn/experiments/experiment_reader.h"

namespace posattn {
namespace {

// The order of the documentation; embedded experiments that are not named here follow by name.
constexpr std::string_view documented =
    " value-range value-range-homogeneous sample-count sample-count-outside input-length "
    "variable-length small-standard encodings variants accuracy length-generalisation "
    "beside-compiled k-hop k-hop-unseen k-hop-error k-hop-length k-hop-sanford k-hop-codes "
    "samples-depth-k-hop samples-depth-sum mixed-type mixed-type-samples mixed-type-gpt2 "
    "mixed-type-gpt2-unparsable ";

// An experiment of the program, or a view in its file.
struct EmbeddedExperiment {
  std::string name;
  ExperimentFile file;
  bool is_view = false;
};

const std::vector<EmbeddedExperiment>& program_experiments() {
  static const std::vector<EmbeddedExperiment> all = [] {
    std::vector<EmbeddedExperiment> found;
    for (const EmbeddedFile& file : embedded_experiments()) {
      constexpr std::string_view suffix = ".toml";
      if (!file.name.ends_with(suffix)) continue;
      const std::string where(file.name), name = where.substr(0, where.size() - suffix.size());
      found.push_back({name, {name, file.text}, false});
      const toml::table table = parse_toml(file.text, where, "an experiment");
      for (std::string& view : view_names(ExperimentReader(where), table)) {
        found.push_back({std::move(view), {name, file.text}, true});
      }
    }
    const auto place = [](const EmbeddedExperiment& one) {
      return documented.find(" " + one.name + " ");
    };
    std::ranges::stable_sort(found, {}, place);
    return found;
  }();
  return all;
}

const EmbeddedExperiment* find_embedded(const std::string& name) {
  const auto found = std::ranges::find(program_experiments(), name, &EmbeddedExperiment::name);
  return found == program_experiments().end() ? nullptr : &*found;
}

// The keys of runs that differ in nothing but their seed. A grid may have thousands of those, and
// writing the settings as text is most of a key's cost: it is done once, the seed put in between.
class SeedKeys {
 public:
  explicit SeedKeys(const RunConfig& config) : name_(config.task + "-" + config.architecture) {
    nlohmann::json settings = nlohmann::json::parse(to_json(config));
    for (const std::string& key : result_neutral_keys()) settings.erase(key);
    settings.erase("device");
    if (config.precision == "auto") settings["precision"] = "fp32";  // as runs_of has it
    const std::string text = settings.dump();
    constexpr std::string_view name = "\"seed\":";  // no value has this: its quotes are escaped
    const std::size_t seed = text.find(name) + name.size();
    before_ = hash_of(std::string_view(text).substr(0, seed));
    after_ = text.substr(text.find_first_of(",}", seed));
  }

  std::string key(int64_t seed) const {
    const std::string digits = std::to_string(seed);
    return fmt::format("{}-seed{}-{:016x}", name_, digits,
                       hash_of(after_, hash_of(digits, before_)));
  }

 private:
  std::string name_;
  uint64_t before_ = 0;  // hash of the settings as JSON up to the seed
  std::string after_;    // the settings after it
};

// "m0" and "standard" are one architecture: their runs are the same.
std::string plain_architecture(const RunConfig& config) {
  ModelSpec spec;
  apply_preset(config.architecture, spec);
  return preset_name(spec);
}

// An experiment's name becomes a folder among what a results folder holds.
void check_folder_name(const std::string& name, const std::filesystem::path& file) {
  constexpr std::string_view taken[] = {"runs", "lock", "report.html", "shards", "slurm"};
  // A merge works in .merging; SQLite keeps results.db-journal and the like in the same folder.
  const bool is_taken = name.starts_with('.') || name.starts_with("results.db") ||
                        std::ranges::find(taken, name) != std::end(taken);
  if (!is_plain_line(name)) {
    throw Error(ExitCode::configuration, "an experiment's name with control characters",
                "a file name that can be shown on one line");
  }
  // Its files' names are longer, as NAME-quick-epochs100-fp32.csv, and 255 bytes at most.
  constexpr std::size_t longest = 200;
  if (name.size() > longest) {
    throw Error(ExitCode::configuration,
                fmt::format("an experiment's name of {} bytes", name.size()),
                fmt::format("at most {}", longest), "rename its file");
  }
  if (!is_taken) return;
  throw Error(ExitCode::configuration, fmt::format("an experiment named '{}'", name),
              "a name that a results folder does not use itself",
              fmt::format("rename {}", file.string()));
}

// Somebody's own results must not replace those of an embedded experiment, also of its variants.
void check_own_name(const Experiment& experiment, const std::filesystem::path& file) {
  const bool is_view = !experiment.view_of.empty();
  for (const std::string& embedded : experiment_names()) {
    if (!changes_of_output(experiment.name, embedded)) continue;
    throw Error(ExitCode::configuration,
                fmt::format("'{}{}' would take the results folder of '{}', an experiment of the "
                            "program",
                            file.string(), is_view ? ":" + experiment.name : "", embedded),
                is_view ? "another name of the view" : "another file name",
                fmt::format("rename it, as my-{}{}", experiment.name, is_view ? "" : ".toml"));
  }
}

// "mine.toml:VIEW"
std::pair<std::filesystem::path, std::string> file_and_view(const std::string& named) {
  constexpr std::string_view mark = ".toml:";
  const std::size_t place = named.rfind(mark);
  if (place == std::string::npos) return {named, ""};
  return {named.substr(0, place + mark.size() - 1), named.substr(place + mark.size())};
}

constexpr std::size_t most_runs = 100'000;

void check_size(const Experiment& experiment, std::size_t places) {
  const auto lines = static_cast<std::size_t>(
      std::ranges::count(experiment.lines, false, &ExperimentLine::is_baseline));
  const std::size_t runs = experiment.tasks.size() * places * lines * experiment.seeds.size();
  if (runs <= most_runs) return;
  throw Error(ExitCode::configuration,
              fmt::format("a grid of {} runs: {} tasks, {} lines, {} seeds{}", runs,
                          experiment.tasks.size(), lines, experiment.seeds.size(),
                          places > 1 ? fmt::format(", {} values", places) : ""),
              fmt::format("at most {} runs", most_runs),
              "split the experiment, or take fewer seeds");
}

}  // namespace

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const EmbeddedExperiment& one : program_experiments()) names.push_back(one.name);
  return names;
}

std::optional<ExperimentFile> embedded_experiment(const std::string& name) {
  if (const EmbeddedExperiment* found = find_embedded(name)) return found->file;
  return {};
}

Experiment load_experiment(const std::string& name_or_file, const ExperimentChanges& changes) {
  if (const EmbeddedExperiment* found = find_embedded(name_or_file)) {
    const auto& [name, text] = found->file;
    Experiment experiment =
        read_experiment(text, name, name + ".toml", changes, found->is_view ? name_or_file : "");
    experiment.is_embedded = true;
    return experiment;
  }
  const auto [path, view] = file_and_view(name_or_file);
  std::error_code ignored;
  if (path.extension() != ".toml" && !std::filesystem::is_regular_file(path, ignored)) {
    throw unknown_name(ExitCode::usage, "experiment", name_or_file, experiment_names());
  }
  const std::string file = path.stem().string();
  check_folder_name(file, path);
  const std::string text = read_toml_file(path);
  check_views(text, file, path.string());  // a mistake in one shows at once
  Experiment experiment = read_experiment(text, file, path.string(), changes, view);
  check_folder_name(experiment.name, path);
  const auto embedded = embedded_experiment(file);
  experiment.is_embedded = embedded && embedded->name == file && embedded->text == text;
  if (!experiment.is_embedded) check_own_name(experiment, path);
  return experiment;
}

std::optional<ExperimentChanges> changes_of_output(const std::string& output,
                                                   const std::string& name) {
  if (!output.starts_with(name)) return {};
  std::string_view rest = std::string_view(output).substr(name.size());
  ExperimentChanges changes;
  constexpr std::string_view quick = "-quick", epochs = "-epochs";
  for (const char* precision : {"fp32", "tf32"}) {
    const std::string suffix = std::string("-") + precision;
    if (!rest.ends_with(suffix)) continue;
    changes.precision = precision;
    rest.remove_suffix(suffix.size());
    break;
  }
  if (rest.starts_with(quick)) {
    changes.quick = true;
    rest.remove_prefix(quick.size());
  }
  if (rest.starts_with(epochs)) {
    rest.remove_prefix(epochs.size());
    if (rest.empty() || rest.size() > 9 ||
        rest.find_first_not_of("0123456789") != std::string_view::npos) {
      return {};
    }
    changes.epochs = parse_integer(rest, "--epochs");
    rest = {};
  }
  if (!rest.empty()) return {};
  return changes;
}

std::string run_key(const RunConfig& config) { return SeedKeys(config).key(config.seed); }

std::vector<ExperimentRun> runs_of(const Experiment& experiment) {
  std::vector<std::optional<double>> places = {std::nullopt};
  if (!experiment.axis.is_tested()) {
    places.assign(experiment.axis.values.begin(), experiment.axis.values.end());
  }
  check_size(experiment, places.size());
  std::vector<ExperimentRun> runs;
  runs.reserve(experiment.tasks.size() * places.size() * experiment.lines.size() *
               experiment.seeds.size());
  for (const std::string& task : experiment.tasks) {
    for (const std::optional<double> x : places) {
      for (const ExperimentLine& line : experiment.lines) {
        if (line.is_baseline) continue;
        ExperimentRun run{task, line.name, x, experiment.settings, {}};
        run.config.task = task;
        for (const auto& [key, value] : line.settings) set_field(run.config, key, value);
        if (x) set_field(run.config, experiment.axis.key, fmt::format("{}", *x));
        if (experiment.axis.steps > 0) {
          const int64_t an_epoch = (run.config.samples + run.config.batch - 1) / run.config.batch;
          run.config.epochs = std::max<int64_t>(1, experiment.axis.steps / an_epoch);
        }
        take_hints(run.config);
        run.config.architecture = plain_architecture(run.config);
        const SeedKeys keys(run.config);
        for (const uint64_t seed : experiment.seeds) {
          run.config.seed = static_cast<int64_t>(seed);
          run.key = keys.key(run.config.seed);
          runs.push_back(run);
        }
      }
    }
  }
  return runs;
}

std::string precision_to_train(const Experiment& experiment, const std::filesystem::path& results) {
  if (experiment.states_precision || exists(results / experiment.output_name)) return "";
  const std::vector<ExperimentRun> runs = runs_of(experiment);
  const bool in_tf32 = std::ranges::all_of(runs, [](const ExperimentRun& run) {
    RunConfig config = run.config;
    config.precision = "auto";
    return precision_used(config) == "tf32";
  });
  return in_tf32 ? "tf32" : "";
}

std::string precision_to_read(const Experiment& experiment, const std::filesystem::path& results) {
  return !exists(results / experiment.output_name) &&
                 exists(results / (experiment.output_name + "-tf32"))
             ? "tf32"
             : "";
}

std::vector<ExperimentRun> each_once(const std::vector<ExperimentRun>& runs) {
  std::set<std::string_view> seen;
  std::vector<ExperimentRun> once;
  for (const ExperimentRun& run : runs) {
    if (seen.insert(run.key).second) once.push_back(run);
  }
  return once;
}

}  // namespace posattn

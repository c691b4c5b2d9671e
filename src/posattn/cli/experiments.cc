// posattn experiments

#include <set>

#include "posattn/base/command.h"
#include "posattn/benchmark/steps.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/progress.h"
#include "posattn/experiments/experiment.h"

namespace posattn {
namespace {

struct ExperimentsFlags {
  std::vector<std::string> files;
  std::string show;
  std::string device = "auto";
  int threads = 0;
  bool json = false;
};

struct ExperimentRow {
  Experiment experiment;
  size_t runs = 0;
  double steps = 0, seconds = 0, quick_seconds = 0;
};

std::vector<RunConfig> distinct_runs(const Experiment& experiment) {
  std::vector<RunConfig> configs;
  std::set<std::string> keys;
  for (const ExperimentRun& run : runs_of(experiment)) {
    if (keys.insert(run.key).second) configs.push_back(run.config);
  }
  return configs;
}

ExperimentRow measure(const std::string& name, const MachineSpeed& speed) {
  ExperimentRow row{load_experiment(name)};
  const std::vector<RunConfig> runs = distinct_runs(row.experiment);
  row.runs = runs.size();
  for (const RunConfig& run : runs) {
    const int64_t steps_of_epoch = (run.samples + run.batch - 1) / run.batch;
    row.steps += static_cast<double>(steps_of_epoch * run.epochs);
  }
  row.seconds = estimated_seconds(runs, speed);
  try {
    row.quick_seconds =
        estimated_seconds(distinct_runs(load_experiment(name, {.quick = true})), speed);
  } catch (const Error&) {  // a file without [quick]
  }
  return row;
}

std::string steps_text(double steps) {
  return steps < 1e5 ? fmt::format("{:.0f}", steps) : fmt::format("{:.1f} M", steps / 1e6);
}

// `first`: as it was named on the command line; "" where all are listed.
std::string next_steps(const std::string& first, bool has_quick) {
  if (first.empty()) {
    return "\nnext:  posattn reproduce value-range --quick\n"
           "       posattn experiments --show value-range > mine.toml\n";
  }
  std::vector<std::string> words = {"posattn", "reproduce", first};
  if (has_quick) words.emplace_back("--quick");
  return fmt::format("\nnext:  {}\n", shell_command(words));
}

std::string as_text(const std::vector<ExperimentRow>& rows, const std::string& device) {
  TextTable table({"experiment", "reproduces", "tasks", "lines", "runs", "steps",
                   "time here (" + device + ")", "--quick"},
                  2);
  for (const ExperimentRow& row : rows) {
    table.add_row({row.experiment.name, row.experiment.paper,
                   std::to_string(row.experiment.tasks.size()),
                   std::to_string(row.experiment.lines.size()), std::to_string(row.runs),
                   steps_text(row.steps), "~ " + duration_text(row.seconds),
                   row.quick_seconds > 0 ? "~ " + duration_text(row.quick_seconds) : "-"});
  }
  return table.to_string() +
         "\nRuns that experiments share are trained once. Times: a measurement of the paper's two\n"
         "models here, scaled by each run's work.\n";
}

std::string as_json(const std::vector<ExperimentRow>& rows, const std::string& device) {
  Json list = Json::array();
  for (const ExperimentRow& row : rows) {
    Json lines = Json::array();
    for (const ExperimentLine& line : row.experiment.lines) lines.push_back(line.name);
    list.push_back({{"name", row.experiment.name},
                    {"title", row.experiment.title},
                    {"paper", row.experiment.paper},
                    {"description", row.experiment.description},
                    {"tasks", row.experiment.tasks},
                    {"lines", lines},
                    {"axis", row.experiment.axis.key},
                    {"values", row.experiment.axis.values},
                    {"runs", row.runs},
                    {"steps", row.steps},
                    {"device", device},
                    {"estimated_seconds", row.seconds},
                    {"estimated_quick_seconds", row.quick_seconds}});
  }
  return json_text(list);
}

ExitCode show_file(const std::string& name) {
  const auto file = embedded_experiment(name);
  if (!file) throw unknown_name(ExitCode::usage, "experiment", name, experiment_names());
  if (file->name != name) {
    write_notice(fmt::format("{} is a view of {}, in the same file", name, file->name));
  }
  write_output(std::string(file->text));
  return ExitCode::done;
}

ExitCode list_experiments(const ExperimentsFlags& options) {
  const int threads = thread_count(options.threads);
  if (!options.show.empty()) return show_file(options.show);
  RunConfig config;
  set_field(config, "device", options.device, "in --device");
  const std::string device = device_used(config);
  std::vector<std::string> names = options.files.empty() ? experiment_names() : options.files;
  for (const std::string& name : names) load_experiment(name);  // errors before the measurement
  const MachineSpeed speed = measure_speed(device, precision_used(config), threads);
  std::vector<ExperimentRow> rows;
  rows.reserve(names.size());
  for (const std::string& name : names) rows.push_back(measure(name, speed));
  if (options.json) {
    write_output(as_json(rows, device));
  } else {
    const std::string first = options.files.empty() ? "" : options.files.front();
    write_output(as_text(rows, device) + next_steps(first, rows.front().quick_seconds > 0));
  }
  return ExitCode::done;
}

void add_experiments_options(CLI::App& command, ExperimentsFlags& options) {
  CLI::Option* files =
      argument(command, "EXPERIMENTS", options.files, "Names or files; none: the paper's");
  CLI::Option* show =
      option(command, "--show", options.show, "NAME", "Print the file of one of them")
          ->excludes(files);
  option(command, "--device", options.device, "TEXT [auto]", "Estimate for this device")
      ->excludes(show);
  option(command, "--threads", options.threads, "INT [0]", "Threads to use; 0: one per core")
      ->excludes(show);
  add_json_flag(command, options.json).excludes(show);
}

const Command registered_experiments(
    {.name = "experiments",
     .group = Group::paper,
     .summary = "List the experiments, their size and the time they take on this machine",
     .examples = {"posattn experiments", "posattn experiments mine.toml",
                  "posattn experiments --show value-range > mine.toml"},
     .details =
         "The time is estimated: the speed of the paper's two models is measured for about a "
         "second and scaled by the work of each run. docs/files.md describes a file of your own."},
    add_experiments_options, list_experiments);

}  // namespace
}  // namespace posattn

// posattn compare

#include <algorithm>
#include <charconv>

#include "posattn/base/command.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/compare_output.h"
#include "posattn/cli/grid_choice.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/results/results_database.h"

namespace posattn {
namespace {

struct CompareFlags : GridChoice {
  std::string with;
  std::string split = "test";
  bool json = false;
};

// The command about the experiment as it is meant here, to paste.
std::string posattn_command(const std::string& command, const CompareFlags& options,
                            const std::string& folder) {
  std::vector<std::string> words = {"posattn", command, options.experiment};
  for (const std::string& word : whole_words(options)) words.push_back(word);
  if (folder != "results") words.insert(words.end(), {"--results", folder});
  return shell_command(words);
}

// What the folder has of the experiment after another number of epochs, the largest, and the
// command that shows it; or "".
std::string other_epochs(CompareFlags options, const std::string& folder) {
  const std::string begin = load_experiment(options.experiment).name + "-epochs";
  int64_t most = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) ||
        name == begin + std::to_string(options.changes.epochs.value_or(0))) {
      continue;
    }
    int64_t epochs = 0;
    std::from_chars(name.data() + begin.size(), name.data() + name.size(), epochs);
    if (name == begin + std::to_string(epochs)) most = std::max(most, epochs);
  }
  if (most == 0) return "";
  options.changes.epochs = most;
  options.changes.quick = false;
  options.changes.precision = options.changes.weights = "";
  return fmt::format("there is {}{}: {}", begin, most, posattn_command("compare", options, folder));
}

std::vector<Curve> read_curves(const Experiment& experiment, const std::string& folder,
                               const ResultsDatabase& database, const CompareFlags& options) {
  std::vector<Curve> curves = curves_of(experiment, database);
  if (curves.empty()) {
    const std::string other = other_epochs(options, folder);
    throw Error(
        ExitCode::data, fmt::format("no results of {} in '{}'", experiment.output_name, folder),
        "a finished run", other.empty() ? posattn_command("reproduce", options, folder) : other);
  }
  if (options.split == "test") {
    std::erase_if(curves, [](const Curve& curve) { return curve.split != Split::test; });
  }
  return curves;
}

std::vector<PublishedPoint> read_theirs(const Experiment& experiment, const CompareFlags& options) {
  std::vector<PublishedPoint> points;
  if (options.with.empty()) {
    points = published_points(experiment);
    std::erase_if(points, [&](const PublishedPoint& published) {
      return options.split == "test" && published.point.split != Split::test;
    });
    return points;
  }
  if (!has_results(options.with)) {
    throw Error(ExitCode::data, fmt::format("there are no results in '{}'", options.with),
                "a folder with results of posattn reproduce",
                fmt::format("check --with, or run {}",
                            posattn_command("reproduce", options, options.with)));
  }
  const std::vector<Curve> curves =
      read_curves(experiment, options.with, open_results(options.with, write_notice), options);
  for (PointSummary& point : summarise(experiment, curves)) {
    points.push_back({std::move(point), ""});
  }
  return points;
}

// Runs in fp32 and in tf32 lie in folders of their own: the command that shows those which are not
// shown, where there are any.
std::string other_precision(CompareFlags options, const Experiment& shown) {
  options.changes.precision = options.changes.precision == "tf32" ? "fp32" : "tf32";
  const Experiment other = whole_experiment(options);
  const std::filesystem::path folder = std::filesystem::path(options.results) / other.output_name;
  if (other.output_name == shown.output_name || !std::filesystem::exists(folder)) return "";
  return posattn_command("compare", options, options.results);
}

ExitCode compare_experiment(const CompareFlags& flags) {
  CompareFlags options = flags;
  if (options.changes.precision.empty()) {
    options.changes.precision = precision_to_read(whole_experiment(options), options.results);
  }
  const Experiment experiment = whole_experiment(options);
  const ResultsDatabase database = open_results(options.results, write_notice);
  ComparedExperiment compared{
      .experiment = experiment,
      .whole_epochs = load_experiment(options.experiment).settings.epochs,
      .results = options.results,
      .published = options.with.empty(),
      .curves = read_curves(experiment, options.results, database, options),
      .theirs = read_theirs(experiment, options),
      .comparison = {},
      .paired = {},
      .missing =
          missing_runs(experiment, [&](const std::string& key) { return database.find(key); }),
      .reproduce = posattn_command("reproduce", options, options.results),
      .other_precision = other_precision(options, experiment)};
  compared.comparison = compare(summarise(experiment, compared.curves), compared.theirs,
                                options.with.empty() ? "the published results" : options.with);
  if (experiment.lines.size() >= 2) {
    compared.paired =
        paired_points(compared.curves, experiment.lines[0].name, experiment.lines[1].name);
  }
  write_output(options.json ? comparison_json(compared) : comparison_text(compared));
  return compared.comparison.agrees() ? ExitCode::done : ExitCode::verification;
}

void add_compare_options(CLI::App& command, CompareFlags& options) {
  argument(command, "EXPERIMENT", options.experiment, "Name ('posattn experiments') or file")
      ->required();
  option(command, "--results", options.results, "DIR [results]", "Results folder");
  option(command, "--with", options.with, "DIR", "Compare with this results folder instead");
  option(command, "--split", options.split, "test|all [test]",
         "Losses to show: test, or all with train, validation")
      ->check(CLI::IsMember({"test", "all"}));
  command.add_flag("--quick", options.changes.quick, "Results of reproduce --quick");
  option(command, "--epochs", options.changes.epochs, "INT", "Results of reproduce --epochs");
  option(command, "--weights", options.changes.weights, "FOLDER", "Results of reproduce --weights");
  option(command, "--precision", options.changes.precision, "TEXT",
         "Results of reproduce --precision");
  add_json_flag(command, options.json);
}

const Command registered_compare(
    {.name = "compare",
     .group = Group::paper,
     .summary = "Compare the results of an experiment with the published ones",
     .examples = {"posattn compare value-range", "posattn compare value-range --quick --split all",
                  "posattn compare value-range --results here --with there --json"},
     .details = "A point agrees when our median is in [min / 2, 2 max] of the published runs or "
                "within a factor of 3 of their median. The exit code is 6 when less than 90 % of "
                "the test points agree, and 4 when there are no results. Intervals are 95 % "
                "bootstrap intervals of medians of at least six runs. Two lines are compared by "
                "Wilcoxon's signed-rank test, paired by seed. The end of the output lists the "
                "missing runs and the command that trains them."},
    add_compare_options, compare_experiment);

}  // namespace
}  // namespace posattn

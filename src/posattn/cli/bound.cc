// posattn bound
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/bounds/crossing.h"
#include "posattn/bounds/experiment_bounds.h"
#include "posattn/cli/bound_output.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/terminal.h"
#include "posattn/report/experiment/figure.h"

namespace posattn {
namespace {

struct BoundFlags {
  std::vector<std::string> models;
  bounds::ReportRequest request;
  std::string experiment, results = "results";
  ExperimentChanges changes;
  std::vector<int> crossing, hops = {1, 4, 16};
  std::string figure;
  int threads = 0;
  bool norms = false, json = false;
  ModelHints hints;
};

std::vector<bounds::BoundReport> reports_of(const BoundFlags& flags) {
  std::vector<bounds::BoundReport> reports;
  for (const std::filesystem::path& path : find_named_models(flags.models)) {
    bounds::ReportRequest request = flags.request;
    request.run = settings_of_run(path);
    request.name = request.run ? path.parent_path().string() : path.string();
    request.threads = thread_count(flags.threads);
    const Model model = read_model(path, flags.hints);
    if (request.run) check_settings(path, *request.run, model);
    reports.push_back(bound_report(model, request));
  }
  return reports;
}

Json reports_json(const std::vector<bounds::BoundReport>& reports) {
  Json models = Json::array();
  for (const bounds::BoundReport& report : reports) {
    models.push_back(Json::parse(to_json(report)));
  }
  return {{"models", models}};
}

ExitCode print_bounds(const BoundFlags& flags) {
  const std::vector<bounds::BoundReport> reports = reports_of(flags);
  if (flags.json) {
    write_output(json_text(reports_json(reports)));
  } else if (reports.size() == 1 || flags.norms) {
    for (const bounds::BoundReport& report : reports) {
      write_output((&report == reports.data() ? "" : "\n") + bound_text(report, flags.norms));
    }
  } else {
    write_output(bound_table(reports));
  }
  return ExitCode::done;
}

// Table and figures go to the experiment's folder in the results.
ExitCode print_experiment_bounds(const BoundFlags& flags) {
  const Experiment experiment = load_experiment(flags.experiment, flags.changes);
  bounds::ReportRequest request = flags.request;
  request.threads = thread_count(flags.threads);
  const bounds::ExperimentBounds found = experiment_bounds(experiment, flags.results, request);
  const std::filesystem::path folder =
      std::filesystem::path(flags.results) / experiment.output_name;
  create_folder(folder);
  std::vector<std::filesystem::path> files = {folder / "bounds.csv"};
  write_file(files.front(), to_csv(found));
  for (const std::string& task : experiment.tasks) {
    const std::string svg = draw_bounds(experiment, found, task);
    if (svg.empty()) continue;
    files.push_back(folder / fmt::format("bounds-{}.svg", task));
    write_file(files.back(), svg);
  }
  if (flags.json) {
    std::vector<bounds::BoundReport> reports;
    for (const bounds::RunBounds& run : found.runs) reports.push_back(run.report);
    write_output(json_text(reports_json(reports)));
    return ExitCode::done;
  }
  write_output(experiment_bounds_text(experiment, found) + "\n");
  for (const std::filesystem::path& file : files) write_output(file.string() + "\n");
  return ExitCode::done;
}

ExitCode print_crossing(const BoundFlags& flags) {
  const bounds::ReportRequest& request = flags.request;
  bounds::CrossingRequest asked{.hops = flags.hops, .positional_depths = flags.crossing};
  asked.setting.samples = request.samples.value_or(asked.setting.samples);
  asked.setting.range = request.range.value_or(asked.setting.range);
  asked.setting.clip = request.clip;
  asked.setting.delta = request.delta;
  const bounds::Crossing crossing = find_crossing(asked);
  if (!flags.figure.empty()) write_result(flags.figure, draw_crossing(crossing));
  if (is_standard_output(flags.figure)) return ExitCode::done;
  write_output(flags.json ? Json::parse(to_json(crossing)).dump(2) + "\n"
                          : crossing_text(crossing));
  if (!flags.json) say_written("figure", flags.figure);
  return ExitCode::done;
}

ExitCode answer_bound(const BoundFlags& flags) {
  const int asked = (flags.models.empty() ? 0 : 1) + (flags.experiment.empty() ? 0 : 1) +
                    (flags.crossing.empty() ? 0 : 1);
  if (asked != 1) {
    throw Error(ExitCode::usage, asked == 0 ? "no MODEL" : "several questions at once",
                "one of MODEL..., --experiment NAME and --crossing LIST");
  }
  check_ending("--output", flags.figure, ".svg");
  refuse_with_standard_output(flags.figure, flags.json, "--json");
  if (!flags.experiment.empty()) return print_experiment_bounds(flags);
  return flags.crossing.empty() ? print_bounds(flags) : print_crossing(flags);
}

void add_bound_options(CLI::App& command, BoundFlags& flags) {
  bounds::ReportRequest& request = flags.request;
  argument(command, "MODEL", flags.models, "Model files, run folders, folders of runs");
  option(command, "--samples", request.samples, "INT", "Training samples m; of a run: its own");
  option(command, "--samples-for", request.samples_for, "NUMBER",
         "How many samples the bounds need to promise this gap");
  option(command, "--delta", request.delta, "NUMBER [0.05]",
         "Bounds hold with probability 1 - delta");
  option(command, "--clip", request.clip, "NUMBER [1]", "b: squared errors count up to b^2");
  option(command, "--range", request.range, "NUMBER", "R: inputs lie in [-R, R]; as trained");
  option(command, "--fresh-samples", request.fresh_samples, "INT [100000]", "For the measured gap");
  option(command, "--query-key-scale", request.query_key_scale, "NUMBER [1]",
         "Multiply W_Q and W_K by this first, in the bounds");
  CLI::Option* experiment = option(command, "--experiment", flags.experiment, "NAME",
                                   "The runs of an experiment instead");
  option(command, "--results", flags.results, "DIR [results]", "Where they are")->needs(experiment);
  command.add_flag("--quick", flags.changes.quick, "Those of reproduce --quick")->needs(experiment);
  option(command, "--epochs", flags.changes.epochs, "INT", "Those of reproduce --epochs")
      ->needs(experiment);
  option(command, "--precision", flags.changes.precision, "TEXT", "Those of reproduce --precision")
      ->needs(experiment);
  CLI::Option* crossing =
      option(command, "--crossing", flags.crossing, "LIST",
             "Where the bounds of positional networks of these depths and of standard "
             "ones for k hops cross")
          ->delimiter(',')
          ->allow_extra_args(false);
  option(command, "--hops", flags.hops, "LIST [1,4,16]", "k, for --crossing")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(crossing);
  add_output_option(command, flags.figure, "The figure of --crossing; '-': standard output", "FILE")
      .needs(crossing);
  command.add_flag("--norms", flags.norms, "All norms of all matrices, too");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_bound(
    {.name = "bound",
     .group = Group::theory,
     .summary = "Compute generalisation bounds from a model's weights and compare them with the "
                "measured gap",
     .examples = {"posattn bound runs/sort/positional-seed0", "posattn bound runs/sort",
                  "posattn bound model.safetensors --samples 30000 --norms",
                  "posattn bound runs/sort --samples-for 0.1",
                  "posattn bound --experiment sample-count --results results",
                  "posattn bound --crossing 4,8,16 --hops 1,4,16 -o crossing.svg"},
     .details = "The bounds on |risk - training loss| follow from the norms of the weights and "
                "from the number of parameters (docs/bounds.md). For a run the gap is measured "
                "too, between its own training set and fresh samples. Several models give one line "
                "each.\n\n--experiment reads all runs whose weights are in DIR/runs, and writes a "
                "table and figures to DIR/EXPERIMENT. --crossing compares the bounds of positional "
                "and standard networks of several depths. Models that the bounds do not cover are "
                "refused with exit code 3 and the reason: tokens, routes, residuals, "
                "normalisation, RoPE on data, several numbers per node, several lengths."},
    add_bound_options, answer_bound);

}  // namespace
}  // namespace posattn

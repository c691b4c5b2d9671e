#include "posattn/report/experiment/files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/version.h"
#include "posattn/experiments/comparison.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/report/experiment/figure.h"
#include "posattn/results/manifest.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

Json lines_of(const Experiment& experiment) {
  Json lines = Json::array();
  for (const ExperimentLine& line : experiment.lines) {
    Json entry = {{"name", line.name}};
    if (line.is_baseline) entry["baseline"] = true;
    for (const auto& [key, value] : line.settings) entry["settings"][key] = value;
    lines.push_back(entry);
  }
  return lines;
}

Json axis_of(const ExperimentAxis& axis) {
  Json json = {{"key", axis.key}, {"values", axis.values}, {"label", axis.label}};
  const EvaluationAxis& tests = axis.test_axis;
  if (!axis.is_tested())
    json["test_" + (tests.stated ? tests.name : tests.singular())] = axis.test_x;
  return json;
}

// The single runs behind the table.
std::string recorded_runs(const Experiment& experiment, const FindResult& find) {
  std::string text;
  for (const ExperimentRun& run : each_once(runs_of(experiment))) {
    const std::optional<RunResult> result = find(run.key);
    if (result && has_ended(result->status)) text += to_json_line(*result) + "\n";
  }
  return text;
}

struct Drawings {
  std::string svg, png;
};

Drawings draw(const Experiment& experiment, const std::vector<Curve>& curves) {
  const std::vector<PublishedPoint> published = published_points(experiment);
  const std::string svg = draw_experiment(experiment, curves, published, FigureFormat::svg);
  if (svg.empty()) throw Error(ExitCode::failed, "no point can be drawn: no median is a number");
  return {svg, draw_experiment(experiment, curves, published, FigureFormat::png)};
}

}  // namespace

std::string experiment_manifest(const Experiment& experiment, const RunTally& tally,
                                const std::string& command_line) {
  Json execution = Json::array(), builds = Json::array();
  for (const auto& [how, runs] : tally.execution) {
    execution.push_back({{"device", how.first}, {"precision", how.second}, {"runs", runs}});
  }
  for (const auto& [build, runs] : tally.builds) {
    builds.push_back({{"version", build.first}, {"commit", build.second}, {"runs", runs}});
  }
  // What the grid decides is not a setting of all runs.
  Json settings = Json::parse(to_json(experiment.settings));
  for (const char* key : {"task", "architecture", "seed"}) settings.erase(key);
  if (!experiment.axis.is_tested()) settings.erase(experiment.axis.key);
  const Json manifest = {
      {"posattn", {{"version", build_info().version}, {"commit", build_info().commit}}},
      {"date", utc_now()},
      {"command_line", command_line},
      {"experiment",
       {{"name", experiment.name},
        {"title", experiment.title},
        {"paper", experiment.paper},
        {"reduction", experiment.reduction},
        {"metric", experiment.metric->name},
        {"tasks", experiment.tasks},
        {"lines", lines_of(experiment)},
        {"axis", axis_of(experiment.axis)},
        {"seeds", experiment.seeds},
        {"settings", settings}}},
      {"runs",
       {{"all", tally.runs},
        {"done", tally.done},
        {"diverged", tally.diverged},
        {"failed", tally.failed},
        {"missing", tally.missing}}},
      {"training_wall_clock_seconds", tally.seconds},
      {"computed", execution},
      {"builds", builds}};
  return manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ExperimentFiles write_experiment_files(const std::filesystem::path& results,
                                       const Experiment& whole, const ResultsDatabase& database,
                                       const std::string& command_line) {
  const FindResult find = [&](const std::string& key) { return database.find(key); };
  const RunTally tally = tally_runs(whole, find);
  if (!tally.any()) {
    throw Error(ExitCode::data,
                fmt::format("no result of {} in {}", whole.output_name, results.string()),
                "at least one finished run", "posattn reproduce trains them");
  }
  const std::vector<Curve> curves = curves_of(whole, find);
  const std::filesystem::path folder = results / whole.output_name;
  create_folder(folder);
  const auto file = [&](const char* ending) { return folder / (whole.output_name + ending); };
  ExperimentFiles files{file(".csv"),
                        file(".svg"),
                        file(".png"),
                        folder / "runs.jsonl",
                        folder / "manifest.json",
                        ""};
  write_file(files.csv, to_csv(summarise(whole, curves)));
  write_file(files.runs, recorded_runs(whole, find));
  write_file(files.manifest, experiment_manifest(whole, tally, command_line));
  Drawings drawings;
  try {
    drawings = draw(whole, curves);
  } catch (const Error& error) {
    files.problem = error.problem() + (error.hint().empty() ? "" : "; " + error.hint());
    // A figure of earlier results next to this table would mislead.
    std::error_code ignored;
    std::filesystem::remove(files.svg, ignored);
    std::filesystem::remove(files.png, ignored);
    files.svg = files.png = "";
    return files;
  }
  write_file(files.svg, drawings.svg);
  write_file(files.png, drawings.png);
  return files;
}

}  // namespace posattn

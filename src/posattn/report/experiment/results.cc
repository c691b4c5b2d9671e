#include "posattn/report/experiment/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "posattn/base/command.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/version.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/report/experiment/figure.h"
#include "posattn/results/manifest.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

// Names of the folders that experiments wrote their files to.
std::vector<std::string> output_folders(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::error_code ignored;  // what cannot be looked into is none of ours
    if (fs::exists(entry->path() / "manifest.json", ignored)) {
      names.push_back(entry->path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

// A file "mine-quick.toml" may have written the folder that looks like a variant of mine.toml's.
bool can_load(const std::string& source, const ExperimentChanges& changes) {
  try {
    load_experiment(source, changes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string reproduce_command(const fs::path& folder, const std::string& source,
                              const ExperimentChanges& changes) {
  std::vector<std::string> words = {"posattn", "reproduce", source};
  if (changes.quick) words.emplace_back("--quick");
  if (changes.epochs) words.insert(words.end(), {"--epochs", std::to_string(*changes.epochs)});
  if (!changes.precision.empty()) words.insert(words.end(), {"--precision", changes.precision});
  words.insert(words.end(), {"--results", folder.string()});
  return shell_command(words);
}

ExperimentResults gather(const fs::path& folder, const ResultsDatabase& database,
                         const std::string& source, const ExperimentChanges& changes) {
  constexpr uint64_t largest_manifest = 16 << 20;
  const FindResult find = [&](const std::string& key) { return database.find(key); };
  ExperimentResults results;
  results.experiment = load_experiment(source, changes);
  results.tally = tally_runs(results.experiment, find);
  if (!results.tally.any()) return results;
  results.curves = curves_of(results.experiment, find);
  results.published = published_points(results.experiment);
  results.command = reproduce_command(folder, source, changes);
  const fs::path manifest = folder / results.experiment.output_name / "manifest.json";
  std::error_code ignored;
  if (fs::exists(manifest, ignored)) results.manifest = read_text_file(manifest, largest_manifest);
  return results;
}

// On the CPU products are always fp32, whatever was asked for.
std::string precision_of(const RunResult& result) {
  if (result.device == "cpu") return "fp32";
  const auto settings = nlohmann::json::parse(result.configuration, nullptr, false);
  const bool known =
      settings.is_object() && settings.contains("precision") && settings["precision"].is_string();
  return known ? settings["precision"].get<std::string>() : "unknown";
}

std::optional<double> seconds_since_1970(const std::string& utc) {
  std::tm time{};
  const char* end = strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return {};
  return static_cast<double>(timegm(&time));
}

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

std::vector<ExperimentResults> read_results(const fs::path& folder,
                                            const std::vector<std::string>& experiments) {
  const ResultsDatabase database = open_results(folder);
  const std::vector<std::string> folders = output_folders(folder);
  std::vector<ExperimentResults> all;
  for (const std::string& source : experiments.empty() ? experiment_names() : experiments) {
    const std::string name = load_experiment(source).name;
    std::vector<ExperimentChanges> variants = {{}};
    for (const std::string& output : folders) {
      const auto changes = changes_of_output(output, name);
      if (changes && output != name && can_load(source, *changes)) variants.push_back(*changes);
    }
    const size_t before = all.size();
    for (const ExperimentChanges& changes : variants) {
      ExperimentResults results = gather(folder, database, source, changes);
      if (results.tally.any()) all.push_back(std::move(results));
    }
    if (!experiments.empty() && all.size() == before) {
      throw Error(ExitCode::data, fmt::format("no result of {} in {}", source, folder.string()),
                  "at least one finished run", reproduce_command(folder, source, {}));
    }
  }
  if (all.empty()) {
    throw Error(ExitCode::data, fmt::format("no result of an experiment in {}", folder.string()),
                fmt::format("runs of one of: {}", fmt::join(experiment_names(), ", ")),
                folders.empty() ? reproduce_command(folder, "value-range", {.quick = true})
                                : "name the files of your own experiments: " +
                                      shell_command({"posattn", "report", "--results",
                                                     folder.string(), folders.front() + ".toml"}));
  }
  return all;
}

double wall_clock_seconds(const std::vector<TrainingTime>& runs) {
  double seconds = 0;
  std::vector<std::pair<double, double>> spans;  // begin, end
  for (const TrainingTime& run : runs) {
    if (!(run.seconds > 0)) continue;
    if (const auto end = seconds_since_1970(run.ended)) {
      spans.emplace_back(*end - run.seconds, *end);
    } else {
      seconds += run.seconds;
    }
  }
  std::ranges::sort(spans);
  double covered = -std::numeric_limits<double>::infinity();  // all before it is counted
  for (const auto& [begin, end] : spans) {
    if (end <= covered) continue;
    seconds += end - std::max(begin, covered);
    covered = end;
  }
  return seconds;
}

RunTally tally_runs(const Experiment& experiment, const FindResult& find) {
  RunTally tally;
  std::vector<TrainingTime> times;
  for (const ExperimentRun& run : each_once(runs_of(experiment))) {
    ++tally.runs;
    const std::optional<RunResult> result = find(run.key);
    if (!result) {
      ++tally.missing;
      continue;
    }
    ++(result->status == RunStatus::done       ? tally.done
       : result->status == RunStatus::diverged ? tally.diverged
                                               : tally.failed);
    times.push_back({result->ended, result->seconds});
    ++tally.execution[{result->device, precision_of(*result)}];
    ++tally.builds[{result->version, result->commit}];
  }
  tally.seconds = wall_clock_seconds(times);
  return tally;
}

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

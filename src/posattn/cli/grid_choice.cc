#include "posattn/cli/grid_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/compare_output.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

// Adds "--flag value" unless the value is empty.
void add_words(std::vector<std::string>& words, const std::string& flag, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {flag, value});
}

// At most four of the axis' places, with the first and the last.
std::vector<double> shown_places(const std::vector<double>& values) {
  constexpr std::size_t most = 4;
  if (values.size() <= most) return values;
  std::vector<double> shown;
  for (std::size_t i = 0; i < most; ++i) {
    shown.push_back(values[i * (values.size() - 1) / (most - 1)]);
  }
  return shown;
}

const CurvePoint* point_at(const Curve& curve, double x) {
  for (const CurvePoint& point : curve.points) {
    if (point.x == x) return &point;
  }
  return nullptr;
}

// "9/10": finished of all runs behind a curve.
std::string run_count(const Experiment& whole, const Curve& curve) {
  const bool is_tested = whole.axis.is_tested();  // each run is in every point
  std::size_t finished = 0;
  int64_t diverged = 0;
  for (const CurvePoint& point : curve.points) {
    finished += point.runs.size();
    diverged += point.diverged;
    if (is_tested) break;
  }
  if (whole.is_baseline(curve.line)) return std::to_string(finished);
  const std::size_t all = whole.seeds.size() * (is_tested ? 1 : whole.axis.values.size());
  const std::string text = fmt::format("{}/{}", finished, all);
  return diverged == 0 ? text : fmt::format("{} ({} diverged)", text, diverged);
}

Json path_json(const std::filesystem::path& path) {
  return path.empty() ? Json() : Json(path.string());
}

}  // namespace

void add_grid_options(CLI::App& command, GridChoice& choice) {
  ExperimentChanges& changes = choice.changes;
  argument(command, "EXPERIMENT", choice.experiment, "Name ('posattn experiments') or file")
      ->required();
  option(command, "--tasks", changes.tasks, "LIST", "Only these, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  option(command, "--lines", changes.lines, "LIST", "Only these lines of the figure")
      ->delimiter(',')
      ->allow_extra_args(false);
  option(command, "--runs", changes.runs, "N", "Only the first N seeds");
  option(command, "--seeds", choice.seeds, "LIST", "These seeds, as 0..9 or 1,5,7..9");
  option(command, "--values", choice.values, "LIST", "Only these values of the axis, as 1,2,10");
  option(command, "--epochs", changes.epochs, "INT", "Train for this many epochs");
  option(command, "--device", changes.device, "TEXT", "Where to compute: auto, cpu or cuda");
  option(command, "--precision", changes.precision, "TEXT",
         "Precision of products on the GPU: fp32 or tf32");
  option(command, "--weights", changes.weights, "FOLDER",
         "Fine-tune the GPT-2 of this folder (mixed-type-gpt2)");
  command.add_flag("--quick", changes.quick, "A small version, for a first look");
  option(command, "--results", choice.results, "DIR [results]", "Results folder");
  command.add_flag("--fail-fast", choice.fail_fast, "Stop when a run fails");
}

Experiment chosen_part(const GridChoice& choice) {
  ExperimentChanges changes = choice.changes;
  if (!choice.seeds.empty()) changes.seeds = parse_seeds(choice.seeds);
  if (!choice.values.empty()) changes.values = parse_scales(choice.values, "--values");
  return load_experiment(choice.experiment, changes);
}

Experiment whole_experiment(const GridChoice& choice) {
  ExperimentChanges changes;
  changes.quick = choice.changes.quick;
  changes.epochs = choice.changes.epochs;
  changes.precision = choice.changes.precision;
  changes.weights = choice.changes.weights;
  return load_experiment(choice.experiment, changes);
}

std::vector<std::string> whole_words(const GridChoice& choice) {
  std::vector<std::string> words;
  if (choice.changes.quick) words.emplace_back("--quick");
  if (choice.changes.epochs) add_words(words, "--epochs", std::to_string(*choice.changes.epochs));
  add_words(words, "--precision", choice.changes.precision);
  add_words(words, "--weights", choice.changes.weights);
  return words;
}

std::vector<std::string> chosen_words(const GridChoice& choice) {
  std::vector<std::string> words;
  add_words(words, "--tasks", fmt::format("{}", fmt::join(choice.changes.tasks, ",")));
  add_words(words, "--lines", fmt::format("{}", fmt::join(choice.changes.lines, ",")));
  if (choice.changes.runs) add_words(words, "--runs", std::to_string(*choice.changes.runs));
  add_words(words, "--seeds", choice.seeds);
  add_words(words, "--values", choice.values);
  add_words(words, "--device", choice.changes.device);
  for (const std::string& word : whole_words(choice)) words.push_back(word);
  if (choice.fail_fast) words.emplace_back("--fail-fast");
  return words;
}

std::string survey_line(const GridSurvey& found, const std::filesystem::path& results) {
  std::string text = fmt::format("{} in {}: {} there", plural(found.runs, "run"), results.string(),
                                 found.done + found.diverged);
  if (found.diverged > 0) text += fmt::format(" ({} diverged)", found.diverged);
  text += fmt::format(", {} to train", found.missing());
  std::vector<std::string> details;
  if (found.begun > 0) details.push_back(fmt::format("{} begun", found.begun));
  if (found.failed > 0) details.push_back(fmt::format("{} failed before", found.failed));
  if (!details.empty()) text += fmt::format(" ({})", fmt::join(details, ", "));
  return text;
}

std::string survey_table(const Experiment& chosen, const std::filesystem::path& results,
                         const std::optional<Shard>& shard) {
  TextTable table({"task", "line", "runs", "there", "diverged", "begun", "missing"}, 2);
  const std::vector<PartSurvey> surveyed = survey(results, runs_of(chosen), shard);
  for (const auto& [task, line, found] : surveyed) {
    table.add_row({task, line, std::to_string(found.runs),
                   std::to_string(found.done + found.diverged), std::to_string(found.diverged),
                   std::to_string(found.begun), std::to_string(found.missing())});
  }
  return table.to_string() + "\n" + survey_line(whole_of(surveyed), results) + "\n";
}

std::string shard_line(const Experiment& whole, const Shard& shard, const GridSummary& summary) {
  std::string text =
      fmt::format("shard {} of {}: {}, {} ended", to_string(shard), whole.output_name,
                  plural(summary.runs, "run"), summary.there + summary.done + summary.diverged);
  if (summary.there > 0) text += fmt::format(" ({} before)", summary.there);
  return text + "\n";
}

std::string survey_json(const Experiment& chosen, const std::filesystem::path& results,
                        const std::optional<Shard>& shard) {
  const auto counts = [](const GridSurvey& found) -> Json {
    return {{"runs", found.runs},     {"done", found.done},   {"diverged", found.diverged},
            {"failed", found.failed}, {"begun", found.begun}, {"missing", found.missing()},
            {"epochs", found.epochs}};
  };
  const std::vector<PartSurvey> surveyed = survey(results, runs_of(chosen), shard);
  Json parts = Json::array();
  for (const auto& [task, line, found] : surveyed) {
    Json part = {{"task", task}, {"line", line}};
    part.update(counts(found));
    parts.push_back(part);
  }
  return json_text({{"experiment", chosen.output_name},
                    {"results", results.string()},
                    {"all", counts(whole_of(surveyed))},
                    {"parts", parts}});
}

std::string median_table(const Experiment& whole, const std::vector<Curve>& curves) {
  const std::vector<double> places = shown_places(whole.axis.values);
  std::vector<std::string> header = {"task", "line", "runs"};
  for (const double x : places) {
    header.push_back(fmt::format("{} = {}", whole.axis.name(), x));
  }
  TextTable table(header, 2);
  std::string task;
  for (const Curve& curve : curves) {
    if (curve.split != Split::test) continue;
    std::vector<std::string> row = {curve.task == task ? "" : curve.task, curve.line,
                                    run_count(whole, curve)};
    for (const double x : places) {
      const CurvePoint* point = point_at(curve, x);
      row.push_back(point == nullptr ? "-" : short_number(summarise(whole, curve, *point).median));
    }
    table.add_row(row);
    task = curve.task;
  }
  return fmt::format("median test {}\n", whole.metric->words) + table.to_string();
}

std::string file_list(const ExperimentFiles& files) {
  std::string text = "wrote";
  for (const auto& path : {files.csv, files.svg, files.png, files.runs, files.manifest}) {
    if (!path.empty()) text += fmt::format("  {}\n     ", path.string());
  }
  text.erase(text.find_last_not_of(' ') + 1);
  if (!files.problem.empty()) text += fmt::format("no figure: {}\n", files.problem);
  return text;
}

std::string reproduce_json(const Experiment& whole, const std::filesystem::path& results,
                           const GridSummary& summary, const ExperimentFiles& files,
                           const std::vector<Curve>& curves) {
  Json failures = Json::array();
  for (const RunFailure& failure : summary.failures) {
    failures.push_back(
        {{"key", failure.key}, {"folder", failure.folder.string()}, {"message", failure.message}});
  }
  Json points = Json::array();
  for (const PointSummary& point : summarise(whole, curves)) {
    points.push_back({{"task", point.task},
                      {"line", point.line},
                      {"split", to_string(point.split)},
                      {"x", point.x ? Json(*point.x) : Json()}});
    points.back().update(summary_json(point));
  }
  return json_text({{"experiment", whole.output_name},
                    {"results", results.string()},
                    {"runs",
                     {{"all", summary.runs},
                      {"there", summary.there},
                      {"done", summary.done},
                      {"diverged", summary.diverged},
                      {"failed", summary.failures.size()},
                      {"missing", summary.interrupted}}},
                    {"failures", failures},
                    {"files",
                     {{"csv", path_json(files.csv)},
                      {"svg", path_json(files.svg)},
                      {"png", path_json(files.png)},
                      {"runs", path_json(files.runs)},
                      {"manifest", path_json(files.manifest)}}},
                    {"points", points}});
}

}  // namespace posattn

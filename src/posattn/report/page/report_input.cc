#include "posattn/report/page/report_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <tuple>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/json_fields.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/samples_io.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/network.h"
#include "posattn/results/manifest.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_manifest_bytes = 16 << 20;
constexpr uint64_t most_metrics_bytes = 1 << 30;

// How a run was computed: it may round differently, but is the same experiment.
constexpr std::array execution_keys = {"device", "precision", "path"};

struct FoundRun {
  fs::path folder;
  RunReport report;
  std::string task, command_line, configuration;
  std::map<std::string, std::string> execution;  // by key
  int length = 0;
  double range = 0;
};

std::vector<fs::path> run_folders(const fs::path& path) {
  std::error_code problem;
  if (fs::exists(path / "manifest.json", problem)) return {path};
  if (!fs::exists(path, problem)) {
    throw Error(ExitCode::data, fmt::format("no such file or folder: '{}'", path.string()),
                "a folder written by posattn train");
  }
  std::vector<fs::path> folders;
  for (auto entry = fs::recursive_directory_iterator(path, problem);
       !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    if (entry->path().filename() == "manifest.json") folders.push_back(entry->path().parent_path());
  }
  if (folders.empty()) {
    throw Error(ExitCode::data, fmt::format("no run in {}", path.string()),
                "a folder written by posattn train", problem ? problem.message() : "");
  }
  return folders;
}

void read_metrics(const fs::path& file, RunReport& report) {
  const std::string text = read_text_file(file, most_metrics_bytes);
  size_t begin = 0;
  int number = 0;  // of the line
  // A last line without its end is still being written.
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const EpochRecord record = epoch_record_from_json(
        text.substr(begin, end - begin), fmt::format("{}:{}", file.string(), ++number));
    begin = end + 1;
    report.curve.push_back({record.epoch, record.train_loss, record.validation_loss});
    report.seconds = record.seconds;
    if (!record.tests.empty()) report.tests = record.tests;
  }
}

FoundRun read_run(const fs::path& folder) {
  const std::string name = (folder / "manifest.json").string();
  FoundRun run;
  run.folder = folder;
  run.report.manifest = read_text_file(name, most_manifest_bytes);
  const Manifest manifest = manifest_from_json(run.report.manifest, name);
  run.report.status = to_string(manifest.status);
  run.command_line = manifest.command_line;
  run.configuration = manifest.configuration;
  const nlohmann::json settings = read_settings(manifest.configuration, name);
  const JsonFields fields(settings, name + ": configuration");
  run.report.architecture = fields.text("architecture");
  run.report.seed = fields.integer("seed");
  run.task = fields.text("task");
  run.length = static_cast<int>(fields.integer("length"));
  run.range = fields.number("range");
  for (const char* key : execution_keys) {
    run.execution[key] = fields.has(key) ? fields.text(key) : "";
  }
  std::error_code ignored;
  if (fs::exists(folder / "metrics.jsonl", ignored)) {
    read_metrics(folder / "metrics.jsonl", run.report);
  }
  return run;
}

// One input of the run's task.
Dataset sample_of(const FoundRun& run, const Model& model, const Task& task) {
  const ModelSpec& spec = model.spec;
  // Checked before anything of this size is made: the length comes from a file.
  const TaskShape shape =
      run.length >= 1 && run.length <= spec.real_nodes ? task.shape(run.length) : TaskShape{};
  if (shape.real_nodes != spec.real_nodes || shape.data_columns != spec.data_columns) {
    throw Error(ExitCode::data,
                fmt::format("{} is not a model of {} at length {}",
                            (run.folder / "model.safetensors").string(), run.task, run.length));
  }
  return make_dataset({.task = &task,
                       .length = run.length,
                       .samples = 1,
                       .range = training_range(run.range, model.origin.integers),
                       .seed = 0,
                       .purpose = Purpose::evaluation_data,
                       .scale = 1,
                       .threads = 1});
}

// None where attention is from data of a task that this program does not know: one of another
// program's own.
std::vector<AttentionMaps> attention_of(const FoundRun& run) {
  const Model model = load_model(run.folder / "model.safetensors");
  const ModelSpec& spec = model.spec;
  const Task* task = model.origin.task == run.task ? task_of(model.origin) : nullptr;
  Dataset sample;
  if (task != nullptr) {
    sample = sample_of(run, model, *task);
  } else if (!spec.attends_by_data()) {
    sample.inputs.resize(static_cast<size_t>(spec.real_nodes) * spec.data_columns);
    sample.tokens.resize(spec.vocabulary > 0 ? spec.real_nodes : 0);
  } else {
    return {};
  }
  Network network(spec);
  const TaskText* text = !spec.attends_by_data() ? nullptr : text_of(model);
  const auto maps_on_sample = [&](std::string caption) {
    const Batch batch{.inputs = sample.inputs,
                      .samples = 1,
                      .real_nodes = spec.real_nodes,
                      .tokens = sample.tokens,
                      .pairs = sample.pairs,
                      .pair_classes = sample.pair_classes};
    return AttentionMaps{
        .caption = std::move(caption),
        .depth = spec.applied_layers(spec.real_nodes),
        .heads = spec.heads,
        .nodes = spec.nodes(),
        .scratch_nodes = spec.scratch_nodes,
        .weights = network.attention(model.parameters, batch),
        .names = text == nullptr ? std::vector<std::string>() : node_texts(*text, batch)};
  };
  if (!spec.attends_by_data()) return {maps_on_sample("The same for every input.")};
  std::vector<AttentionMaps> maps{
      maps_on_sample(spec.vocabulary > 0
                         ? "On one input."
                         : fmt::format("On one input with values in [-{0:g}, {0:g}].", run.range))};
  double largest = 1;
  for (const double c : tested_values(run.report.tests, "c")) largest = std::max(largest, c);
  if (largest > 1) {
    for (float& value : sample.inputs) value *= static_cast<float>(largest);
    maps.push_back(maps_on_sample(fmt::format("On the same input times {:g}.", largest)));
  }
  return maps;
}

void check_comparable(const FoundRun& first, const FoundRun& other) {
  std::vector<std::string> may_differ = result_neutral_keys();
  may_differ.insert(may_differ.end(), {"architecture", "seed", "data-seed", "weight-seed"});
  may_differ.insert(may_differ.end(), execution_keys.begin(), execution_keys.end());
  const std::string difference =
      settings_difference(first.configuration, other.configuration, may_differ);
  if (difference.empty()) return;
  throw Error(ExitCode::data,
              fmt::format("the runs do not compare: {} (there: {}, here: {})", difference,
                          first.folder.string(), other.folder.string()),
              "runs that differ in architecture, seed, device, precision and path alone",
              "make one report for each setting");
}

// Says of every run how it was computed, as far as the runs differ in that.
void name_executions(std::vector<FoundRun>& runs) {
  for (const char* key : execution_keys) {
    const auto value = [key](const FoundRun& run) { return run.execution.at(key); };
    const std::string first = value(runs.front());
    if (std::ranges::all_of(runs, [&](const FoundRun& run) { return value(run) == first; })) {
      continue;
    }
    for (FoundRun& run : runs) {
      std::string& text = run.report.execution;
      text += (text.empty() ? "" : ", ") + value(run);
    }
  }
}

// What the task says of itself; of one that this program does not know, what its tests say.
void describe_task(const std::vector<FoundRun>& runs, ReportInput& input) {
  const auto task = std::ranges::find(tasks(), input.task, &Task::name);
  if (task != tasks().end() && input.length >= (*task)->shortest_length()) {
    input.loss = (*task)->loss();
    input.numbers = (*task)->shape(input.length).vocabulary == 0;
    return;
  }
  for (const FoundRun& run : runs) {
    if (!run.report.tests.empty()) input.loss = loss_among(run.report.tests).loss;
  }
}

}  // namespace

ReportInput read_runs(const std::vector<fs::path>& paths) {
  std::vector<FoundRun> runs;
  std::set<fs::path> seen;
  ReportInput input;
  std::optional<Error> broken;
  for (const fs::path& path : paths) {
    for (const fs::path& folder : run_folders(path)) {
      if (!seen.insert(fs::weakly_canonical(folder)).second) continue;
      try {
        runs.push_back(read_run(folder));
      } catch (const Error& error) {
        if (error.code() != ExitCode::data) throw;
        input.left_out.push_back(printable("left out: " + error.problem()));
        if (!broken) broken = error;
      }
    }
  }
  if (runs.empty() && broken) throw Error(*broken);
  if (runs.empty()) throw Error(ExitCode::data, "no run to report on");
  name_executions(runs);
  std::ranges::sort(runs, {}, [](const FoundRun& run) {
    return std::tuple(run.report.architecture, run.report.execution, run.report.seed, run.folder);
  });

  input.task = runs.front().task;
  input.length = runs.front().length;
  input.range = runs.front().range;
  describe_task(runs, input);
  input.title = fmt::format("{}, length {}", input.task, input.length);
  std::set<std::string> shown;
  for (FoundRun& run : runs) {
    check_comparable(runs.front(), run);
    std::error_code ignored;
    const fs::path model = run.folder / "model.safetensors";
    if (fs::exists(model, ignored)) run.report.model = model.string();
    if (!run.report.model.empty() && shown.insert(run.report.architecture).second) {
      run.report.attention = attention_of(run);
    }
    if (std::ranges::find(input.commands, run.command_line) == input.commands.end()) {
      input.commands.push_back(run.command_line);
    }
  }
  for (FoundRun& run : runs) input.runs.push_back(std::move(run.report));
  return input;
}

}  // namespace posattn

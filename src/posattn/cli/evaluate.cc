// posattn evaluate
#include "posattn/evaluation/evaluate.h"

#include <map>

#include "posattn/cli/commands.h"
#include "posattn/cli/evaluate_output.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/programs/checking/program_task.h"

namespace posattn {
namespace {

constexpr const char* default_scales = "1..10";

struct EvaluateFlags {
  std::vector<std::string> models;
  // The values at which to test along each axis, as the user writes them; at most one is given.
  std::map<const EvaluationAxis*, std::optional<std::string>> values;
  std::vector<std::string> axes;  // others and their values
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 0;
  bool per_node = false, baselines = false, json = false;
  ModelHints hints;
};

// The axes that the user names; none where he names none.
std::vector<AxisValues> chosen_axes(const EvaluateFlags& options) {
  std::vector<std::string> flags;
  std::vector<AxisValues> chosen;
  for (const EvaluationAxis* axis : evaluation_axes()) {
    const std::optional<std::string>& values = options.values.at(axis);
    if (!values) continue;
    flags.push_back(axis->flag());
    chosen = {{*axis, axis->parse(*values, axis->flag())}};
  }
  if (!options.axes.empty()) {
    flags.emplace_back("--axis");
    chosen = parse_several_axes(fmt::format("{}", fmt::join(options.axes, ";")), "--axis");
  }
  if (flags.size() > 1) {
    throw Error(ExitCode::usage, fmt::format("{}", fmt::join(flags, " together with ")),
                "one of them", "--axis may be given several times, as --axis c=1..10");
  }
  return chosen;
}

// Where the user names none: the paper's, or for a task that cannot be tested along it, what the
// task suggests for training runs.
std::vector<AxisValues> usual_axes(const Task& task, bool has_scale) {
  const EvaluationAxis& scales = *evaluation_axes().front();
  if (!has_scale) return {{scales, {1}}};
  if (!states_axis(task, scales.name)) {
    for (const auto& [key, value] : task.settings()) {
      if (key == "test-axis") return parse_several_axes(value, key);
    }
  }
  return {{scales, scales.parse(default_scales, scales.flag())}};
}

// Evaluates models along the axes, which the first one decides where the user did not.
class ModelTests {
 public:
  ModelTests(const EvaluateFlags& options, int threads) : options_(options), threads_(threads) {
    for (AxisValues& axis : chosen_axes(options)) add_axis(std::move(axis));
  }

  void add(const std::filesystem::path& path) {
    const Model model = load_model(path, options_.hints);
    std::optional<CarriedProgram> program;
    std::optional<ProgramTask> computed;
    if (model.origin.task.empty() && model.origin.notes.contains("program")) {
      program.emplace(carried_program(model, path.string()));
      computed.emplace(program->program, &program->routed);
    } else if (model.origin.task.empty()) {
      throw Error(ExitCode::data,
                  fmt::format("'{}' does not say which task it was trained on", path.string()),
                  "a task", "add --task NAME ('posattn tasks' lists them)");
    }
    const Task& task = computed ? *computed : task_of(model.origin, path.string());
    if (options_.baselines && task.baselines().empty()) {
      throw Error(
          ExitCode::usage,
          fmt::format("--baselines with '{}': task {} has none", path.string(), task.name()),
          "a task that has some, as mixed-min");
    }
    // A program draws whole numbers from all of their type, so a scale would not change them.
    const bool has_scale = !computed || !model.origin.integers;
    if (results_.empty()) {
      for (AxisValues& axis : usual_axes(task, has_scale)) add_axis(std::move(axis));
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      results_[i].models.push_back({.path = path.string(),
                                    .program = program ? program->program.name : "",
                                    .has_scale = has_scale,
                                    .spec = model.spec,
                                    .origin = model.origin,
                                    .evaluation = evaluate({.model = &model,
                                                            .task = &task,
                                                            .axis = &results_[i].axis,
                                                            .values = values_[i],
                                                            .samples = options_.samples,
                                                            .seed = options_.seed,
                                                            .threads = threads_,
                                                            .baselines = options_.baselines})});
    }
  }

  const std::vector<AxisResults>& results() const { return results_; }

 private:
  void add_axis(AxisValues axis) {
    results_.push_back({std::move(axis.axis), {}});
    values_.push_back(std::move(axis.values));
  }

  const EvaluateFlags& options_;
  const int threads_;
  std::vector<AxisResults> results_;
  std::vector<std::vector<double>> values_;  // on each axis
};

void note_unfinished(const std::string& folder, const FoundModels& found) {
  if (found.unfinished.empty()) return;
  std::vector<std::string> names;
  for (const std::filesystem::path& run : found.unfinished) {
    names.push_back(run.lexically_relative(folder).string());
  }
  const size_t runs = found.models.size() + names.size();
  write_notice(fmt::format("note: {} of {} runs in {} {} no model yet: {}", names.size(), runs,
                           folder, names.size() == 1 ? "has" : "have", fmt::join(names, ", ")));
}

ExitCode evaluate_models(const EvaluateFlags& options) {
  constexpr int64_t most_samples = 1'000'000'000;
  if (options.samples < 1 || options.samples > most_samples) {
    throw Error(ExitCode::usage, fmt::format("--samples {} is out of range", options.samples),
                fmt::format("1 to {}", most_samples));
  }
  ModelTests tests(options, thread_count(options.threads));
  std::vector<std::string> unfinished;
  NamedPaths named;
  for (const std::string& name : options.models) {
    const FoundModels found = find_models(name);
    note_unfinished(name, found);
    for (const std::filesystem::path& run : found.unfinished) {
      if (named.add(run)) unfinished.push_back(run.string());
    }
    for (const std::filesystem::path& path : found.models) {
      if (named.add(path)) tests.add(path);
    }
  }
  write_output(options.json ? evaluation_json(tests.results(), unfinished)
                            : evaluation_text(tests.results(), options.per_node));
  return ExitCode::done;
}

void add_evaluate_options(CLI::App& command, EvaluateFlags& options) {
  argument(command, "MODEL", options.models, "Model files, run folders or folders of runs")
      ->required();
  for (const EvaluationAxis* axis : evaluation_axes()) {
    const bool by_default = axis == evaluation_axes().front();
    option(command, axis->flag(), options.values[axis],
           by_default ? fmt::format("LIST [{}]", default_scales) : "LIST", axis->help);
  }
  option(command, "--axis", options.axes, "NAME=LIST",
         "An axis of the task and values on it, as k=0..3; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option(command, "--samples", options.samples, "INT [1000]", "Samples per test");
  option(command, "--seed", options.seed, "INT [0]", "Seed of the test samples");
  add_threads_option(command, options.threads);
  command.add_flag("--per-node", options.per_node, "Also the error of every node");
  command.add_flag("--baselines", options.baselines,
                   "Also predictors that the task offers, on the same samples");
  add_json_flag(command, options.json);
  add_hint_flags(command, options.hints);
}

const Command registered_evaluate(
    {.name = "evaluate",
     .group = Group::train,
     .summary = "Test models inside and outside their training range",
     .examples = {"posattn evaluate runs/cumulative-sum --scales 1..10",
                  "posattn evaluate positional.safetensors standard.safetensors --per-node",
                  "posattn evaluate runs/sort --scales 1..10,1000 --samples 10000 --json",
                  "posattn evaluate runs/sort --lengths 8",
                  "posattn evaluate runs/mixed-min --baselines",
                  "posattn evaluate runs/k-hop --axis k=0..3 --axis k-unseen=0..3",
                  "posattn evaluate theirs.safetensors --task sort --architecture standard"},
     .details = "A scale c tests on values in [-range c, range c] that leave the training range. "
                "Integers are drawn from [-range c, range c) and may be in the training range. "
                "--lengths tests at other lengths, and --axis along an axis that the task defines "
                "('posattn tasks' names them). Without any of these the task decides, usually for "
                "scales.\n\nA sample is accurate when each output is within 0.1 + 0.1 |target|. "
                "Models that differ only in their weights are summarised by median and spread. A "
                "model compiled from a program without a task is compared with its program. With "
                "--baselines a share of 100 % means the error of the first baseline."},
    add_evaluate_options, evaluate_models);

}  // namespace
}  // namespace posattn

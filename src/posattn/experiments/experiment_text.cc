// An experiment's TOML file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/base/toml.h"
#include "posattn/experiments/curves.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/experiment_reader.h"
#include "posattn/model/file/gpt2_weights.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

// The part of `all` that is asked for, in the order of `all`.
template <class T>
void keep_part(std::vector<T>& all, const std::vector<T>& wanted, const char* flag) {
  if (wanted.empty()) return;
  for (const T& one : wanted) {
    if (contains(all, one)) continue;
    throw Error(ExitCode::usage, fmt::format("{} {} is not part of the experiment", flag, one),
                fmt::format("some of: {}", fmt::join(all, ", ")));
  }
  std::erase_if(all, [&](const T& one) { return !contains(wanted, one); });
}

bool all_state(const std::vector<std::string>& tasks, std::string_view axis) {
  return std::ranges::all_of(
      tasks, [&](const std::string& task) { return states_axis(find_task(task), axis); });
}

// test-axis = "letters=0": where on an axis of the tasks' own the runs of a point are tested.
AxisValues read_test_place(const ExperimentReader& reader, const toml::table& table,
                           const std::vector<std::string>& tasks) {
  const toml::node& node = *table.get("test-axis");
  constexpr const char* expected = "one place on an axis that the tasks state, as \"k=3\"";
  try {
    AxisValues place = parse_axis_values(reader.text(table, "test-axis", ""), "test-axis");
    if (place.axis.stated && place.values.size() == 1 && all_state(tasks, place.axis.name)) {
      return place;
    }
  } catch (const Error&) {
    reader.refuse(node, "test-axis", expected);
  }
  reader.refuse(node, "test-axis", expected);
}

int64_t read_steps(const ExperimentReader& reader, const toml::node& node,
                   const ExperimentAxis& axis) {
  const std::optional<int64_t> steps = node.value<int64_t>();
  if (axis.key != "samples" || !node.is_integer() || *steps < 1) {
    reader.refuse(node, "steps", "a whole number above 0, and only where the axis is \"samples\"");
  }
  return *steps;
}

ExperimentAxis read_axis(const ExperimentReader& reader, const toml::table& file,
                         const std::vector<std::string>& tasks) {
  const toml::table* table = reader.table(file, "axis");
  if (!table) {
    throw Error(ExitCode::configuration, "no [axis] " + reader.where(file),
                "[axis] with key and values");
  }
  std::vector<std::string> known = {"key", "values", "label", "test-axis", "steps"};
  for (const EvaluationAxis* tested : evaluation_axes())
    known.push_back("test-" + tested->singular());
  reader.only(*table, known);
  ExperimentAxis axis;
  const toml::node& key = reader.required(*table, "key", "\"test-scales\" or a setting");
  axis.key = reader.text(*table, "key", "");
  for (const EvaluationAxis* tested : evaluation_axes()) {
    if (tested->setting() == axis.key) axis.test_axis = *tested;
  }
  if (axis_named(axis.key).stated && all_state(tasks, axis.key)) {
    axis.test_axis = axis_named(axis.key);
  }
  const auto& fields = config_fields();
  const auto field = std::ranges::find(fields, axis.key, &FieldInfo::name);
  const bool is_number = field != fields.end() && axis.key != "seed" &&
                         (field->type == "integer" || field->type == "number");
  if (!axis.is_tested() && !is_number) {
    reader.refuse(
        key, "key",
        "\"test-scales\", an axis that the tasks state, or a setting that is a number, as "
        "\"samples\"");
  }
  axis.values =
      reader.numbers(reader.required(*table, "values", "a list of numbers"), "values", axis);
  axis.label = reader.text(*table, "label", axis.name());
  if (const toml::node* node = table->get("steps")) axis.steps = read_steps(reader, *node, axis);
  bool is_chosen = axis.is_tested();
  for (const EvaluationAxis* tested : evaluation_axes()) {
    const std::string name = "test-" + tested->singular();
    const toml::node* node = table->get(name);
    if (!node) continue;
    if (is_chosen) reader.refuse(*node, name, "only where the axis is a setting, and one such key");
    axis.test_axis = *tested;
    axis.test_x = reader.number(*node, name);
    is_chosen = true;
  }
  if (const toml::node* node = table->get("test-axis")) {
    if (is_chosen) {
      reader.refuse(*node, "test-axis", "only where the axis is a setting, and one such key");
    }
    const AxisValues place = read_test_place(reader, *table, tasks);
    axis.test_axis = place.axis;
    axis.test_x = place.values.front();
  }
  return axis;
}

// What is measured of all tasks; without the key, what they are trained on.
const Metric& read_metric(const ExperimentReader& reader, const toml::table& file,
                          const Experiment& experiment) {
  const auto suits = [&](const Metric& metric) {
    return metric.exists_on(experiment.axis.test_axis.name) &&
           std::ranges::all_of(experiment.tasks, [&](const std::string& task) {
             const bool written = find_task(task).written_answers() != nullptr;
             return find_task(task).loss() == metric.loss && metric.of_answers == written;
           });
  };
  const Metric& loss = training_loss(find_task(experiment.tasks.front()).loss());
  const Metric* metric = known_metric(reader.text(file, "metric", std::string(loss.name)));
  if (metric != nullptr && suits(*metric)) return *metric;
  std::vector<std::string> known;
  for (const Metric* one : metrics()) {
    if (suits(*one)) known.push_back(fmt::format("\"{}\"", one->name));
  }
  const toml::node* node = file.get("metric");
  reader.refuse(node ? *node : file, "metric",
                known.empty() ? "tasks that have the same loss"
                              : fmt::format("one of {}", fmt::join(known, ", ")));
}

std::vector<ExperimentLine> read_lines(const ExperimentReader& reader, const toml::table& file,
                                       const ExperimentAxis& axis) {
  const std::string expected = "[[lines]] with a name and an architecture each";
  const toml::node& node = reader.required(file, "lines", expected);
  const toml::array* array = node.as_array();
  if (!array || array->empty()) reader.refuse(node, "lines", expected);
  std::vector<ExperimentLine> lines;
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (!table) reader.refuse(element, "lines", expected);
    ExperimentLine line;
    line.settings = reader.settings(*table, axis, {"name"});
    reader.required(*table, "architecture", "a preset; `posattn presets` lists them");
    line.name = reader.text(*table, "name", reader.text(*table, "architecture", ""));
    if (line.name.empty()) reader.refuse(element, "name", "a line of text");
    for (const ExperimentLine& other : lines) {
      if (other.name == line.name) reader.refuse(element, "name", "a name of its own");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// Adds the baselines as lines after the others. Every task must offer each of them.
void add_baselines(const ExperimentReader& reader, const toml::table& file,
                   Experiment& experiment) {
  const toml::node* node = file.get("baselines");
  if (!node) return;
  for (const std::string& name : reader.texts(*node, "baselines")) {
    for (const std::string& task : experiment.tasks) {
      try {
        find_experiment_baseline(find_task(task), name);
      } catch (const Error& error) {
        throw error.as(ExitCode::configuration, error.problem() + " " + reader.where(*node));
      }
    }
    if (std::ranges::find(experiment.lines, name, &ExperimentLine::name) !=
        experiment.lines.end()) {
      reader.refuse(*node, "baselines", "names that no line has, each once");
    }
    experiment.lines.push_back({.name = name, .settings = {}, .is_baseline = true});
  }
}

void read_quick(const ExperimentReader& reader, const toml::table& table, Experiment& experiment) {
  reader.only(table, {"tasks", "seeds", "values", "steps", "settings"});
  if (const toml::node* tasks = table.get("tasks")) {
    const std::vector<std::string> part = reader.texts(*tasks, "tasks");
    for (const std::string& task : part) {
      if (!contains(experiment.tasks, task)) reader.refuse(*tasks, "tasks", "a part of tasks");
    }
    keep_part(experiment.tasks, part, "tasks");
  }
  if (const toml::node* seeds = table.get("seeds")) experiment.seeds = reader.seeds(*seeds);
  if (const toml::node* values = table.get("values")) {
    experiment.axis.values = reader.numbers(*values, "values", experiment.axis);
  }
  if (const toml::node* steps = table.get("steps")) {
    experiment.axis.steps = read_steps(reader, *steps, experiment.axis);
  }
  if (const toml::table* settings = reader.table(table, "settings")) {
    for (const auto& [key, value] : reader.settings(*settings, experiment.axis)) {
      set_field(experiment.settings, key, value);
    }
  }
}

// A small model of bytes becomes the GPT-2 of a folder, fine-tuned as its tasks suggest.
void take_weights(const std::string& folder, Experiment& experiment) {
  if (!is_gpt2_folder(folder)) {
    throw Error(ExitCode::data, fmt::format("--weights '{}' is not the folder of a GPT-2", folder),
                "a folder with config.json, model.safetensors, vocab.json and merges.txt");
  }
  offer_gpt2_tasks(folder);
  for (std::string& task : experiment.tasks) {
    constexpr std::string_view written = "-written";
    if (!task.ends_with(written)) {
      throw Error(ExitCode::usage,
                  fmt::format("--weights for {}, whose tasks are not written", experiment.name),
                  "an experiment for language models", "posattn reproduce mixed-type-gpt2");
    }
    task = task.substr(0, task.size() - written.size()) + "-gpt2";
  }
  RunConfig& settings = experiment.settings;
  settings.task = experiment.tasks.front();
  for (const auto& [key, value] : find_task(settings.task).settings()) {
    set_field(settings, key, value);
  }
  settings.from = folder;
  take_start(settings, {"task", "length"});
  const std::string name = gpt2_name(model_spec(settings));
  experiment.lines = {{name, {{"architecture", settings.architecture}}}};
  experiment.output_name += "-" + name;
}

// "quick: 5000 samples, 100 epochs, 2 runs"
std::string quick_reduction(const Experiment& experiment) {
  std::string text = "quick: ";
  if (experiment.axis.key != "samples") {
    text += fmt::format("{} samples, ", experiment.settings.samples);
  }
  if (experiment.axis.steps > 0) {
    text += fmt::format("{} steps, ", experiment.axis.steps);
  } else if (experiment.axis.key != "epochs") {
    text += fmt::format("{} epochs, ", experiment.settings.epochs);
  }
  return text + fmt::format("{} runs", experiment.seeds.size());
}

// A setting of all runs, also of lines that have one of their own.
void set_everywhere(Experiment& experiment, const std::string& key, const std::string& value) {
  if (experiment.axis.decides(key)) {
    throw Error(ExitCode::usage, fmt::format("--{} {}", key, value),
                fmt::format("a setting that [axis] does not decide, as it decides {}", key),
                "--values chooses a part of the axis");
  }
  set_field(experiment.settings, key, value, "in --" + key);
  for (ExperimentLine& line : experiment.lines) {
    std::erase_if(line.settings, [&](const auto& setting) { return setting.first == key; });
  }
}

// Keys and folders must not depend on the machine, so that "auto" is fp32 here, which all results
// without a precision in their name have.
void settle_precision(Experiment& experiment) {
  const auto states = [](const ExperimentLine& line) {
    return std::ranges::any_of(line.settings, [](const auto& s) { return s.first == "precision"; });
  };
  experiment.states_precision = experiment.settings.precision != "auto" ||
                                experiment.axis.key == "precision" ||
                                std::ranges::any_of(experiment.lines, states);
  if (experiment.settings.precision == "auto") experiment.settings.precision = "fp32";
}

void apply_changes(const ExperimentChanges& changes, Experiment& experiment) {
  if (changes.epochs) {
    set_everywhere(experiment, "epochs", std::to_string(*changes.epochs));
    experiment.output_name += fmt::format("-epochs{}", *changes.epochs);
    experiment.reduction = fmt::format("{} epochs", *changes.epochs);
  }
  if (changes.quick) experiment.reduction = quick_reduction(experiment);
  keep_part(experiment.tasks, changes.tasks, "--tasks");
  keep_part(experiment.axis.values, changes.values, "--values");
  if (!changes.lines.empty()) {
    std::vector<std::string> names;
    for (const ExperimentLine& line : experiment.lines) {
      if (!line.is_baseline) names.push_back(line.name);
    }
    keep_part(names, changes.lines, "--lines");
    std::erase_if(experiment.lines, [&](const ExperimentLine& line) {
      return !line.is_baseline && !contains(names, line.name);
    });
  }
  if (!changes.seeds.empty()) experiment.seeds = changes.seeds;
  if (changes.runs) {
    if (*changes.runs < 1 || static_cast<size_t>(*changes.runs) > experiment.seeds.size()) {
      throw Error(ExitCode::usage, fmt::format("--runs {}", *changes.runs),
                  fmt::format("1 to {}, the experiment's seeds", experiment.seeds.size()),
                  "--seeds names other ones");
    }
    experiment.seeds.resize(static_cast<size_t>(*changes.runs));
  }
  if (!changes.device.empty()) set_everywhere(experiment, "device", changes.device);
  if (!changes.precision.empty()) {
    // Other runs, which must not overwrite the table of these.
    if (changes.precision != experiment.settings.precision) {
      experiment.output_name += "-" + changes.precision;
    }
    set_everywhere(experiment, "precision", changes.precision);
  }
  if (!changes.path.empty()) set_everywhere(experiment, "path", changes.path);
}

// Where on an axis a run with this setting is tested.
std::vector<double> tested_values(const EvaluationAxis& axis, const std::string& listed,
                                  const std::string& setting) {
  if (listed.empty()) return {};
  if (!axis.stated) return axis.parse(listed, setting);
  for (const AxisValues& tests : parse_several_axes(listed, setting)) {
    if (tests.axis.name == axis.name) return tests.values;
  }
  return {};
}

// Every run must be possible, and be tested where the figure looks.
void check(const Experiment& experiment, const std::string& where) {
  try {
    std::set<std::string> keys;
    for (const ExperimentRun& run : runs_of(experiment)) {
      RunConfig config = run.config;
      // Whether there is a GPU does not make a file wrong.
      config.device = "cpu";
      config.precision = "fp32";
      if (config.seed == static_cast<int64_t>(experiment.seeds.front())) validate(config);
      if (!keys.insert(run.key).second) {
        throw Error(ExitCode::configuration,
                    fmt::format("line '{}' repeats the runs of another line", run.line),
                    "lines that differ in a setting");
      }
    }
  } catch (const Error& error) {
    throw error.as(ExitCode::configuration, fmt::format("{} (in {})", error.problem(), where));
  }
  const EvaluationAxis& axis = experiment.axis.test_axis;
  std::vector<double> drawn = {experiment.axis.test_x};
  if (experiment.axis.is_tested()) drawn = experiment.axis.values;
  for (const ExperimentLine& line : experiment.lines) {
    RunConfig config = experiment.settings;
    for (const auto& [key, value] : line.settings) set_field(config, key, value);
    const std::string setting = axis.stated ? "test-axis" : axis.setting();
    const std::string listed = get_field(config, setting);
    const std::vector<double> tested = tested_values(axis, listed, setting);
    for (const double x : drawn) {
      if (contains(tested, x)) continue;
      throw Error(
          ExitCode::configuration,
          fmt::format("no test at {} = {} of line '{}' (in {})", axis.name, x, line.name, where),
          fmt::format("{} among {} = \"{}\"", axis.name, setting, listed));
    }
  }
}

Experiment from_table(const toml::table& file, const ExperimentReader& reader,
                      const std::string& name, const std::string& where,
                      const ExperimentChanges& changes) {
  reader.only(file, {"title", "paper", "description", "tasks", "seeds", "metric", "baselines",
                     "axis", "settings", "lines", "quick", "views"});
  Experiment experiment;
  experiment.name = experiment.output_name = name;
  experiment.title = reader.text(file, "title", name);
  experiment.paper = reader.text(file, "paper", "");
  experiment.description = reader.text(file, "description", "", true);
  const toml::node& tasks = reader.required(file, "tasks", "tasks = [\"cumulative-sum\"]");
  experiment.tasks = reader.texts(tasks, "tasks");
  for (const std::string& task : experiment.tasks) {
    if (std::ranges::count(experiment.tasks, task) > 1) {
      reader.refuse(tasks, "tasks", "each task once");
    }
    if (std::ranges::none_of(posattn::tasks(),
                             [&](const Task* one) { return one->name() == task; })) {
      std::vector<std::string> known;
      for (const Task* one : posattn::tasks()) known.emplace_back(one->name());
      throw unknown_name(ExitCode::configuration, "task", task, known, reader.where(tasks));
    }
  }
  experiment.seeds = reader.seeds(reader.required(file, "seeds", "seeds = \"0..9\""));
  experiment.axis = read_axis(reader, file, experiment.tasks);
  experiment.metric = &read_metric(reader, file, experiment);
  if (const toml::table* settings = reader.table(file, "settings")) {
    for (const auto& [key, value] : reader.settings(*settings, experiment.axis)) {
      set_field(experiment.settings, key, value);
    }
  }
  experiment.lines = read_lines(reader, file, experiment.axis);
  settle_precision(experiment);
  add_baselines(reader, file, experiment);
  if (!changes.weights.empty()) take_weights(changes.weights, experiment);
  const toml::table* quick = reader.table(file, "quick");
  if (changes.quick) {
    if (!quick) {
      throw Error(ExitCode::usage, fmt::format("--quick: {} has no [quick]", where),
                  "a table that says what is reduced", "--runs and --epochs reduce any experiment");
    }
    read_quick(reader, *quick, experiment);
    experiment.output_name += "-quick";
  } else if (quick) {
    Experiment reduced = experiment;  // a mistake there shows at once, too
    read_quick(reader, *quick, reduced);
    check(reduced, where);
  }
  apply_changes(changes, experiment);
  check(experiment, where);
  return experiment;
}

// A view shows what the experiment trains.
void check_runs(const Experiment& view, const Experiment& experiment, const std::string& where) {
  std::set<std::string> keys;
  for (const ExperimentRun& run : runs_of(experiment)) keys.insert(run.key);
  for (const ExperimentRun& run : runs_of(view)) {
    if (keys.contains(run.key)) continue;
    throw Error(ExitCode::configuration,
                fmt::format("line '{}' of view '{}' is not among the experiment's runs (in {})",
                            run.line, view.name, where),
                "lines and an axis of runs that the experiment trains",
                "a line states the setting that is the experiment's axis");
  }
}

}  // namespace

Experiment read_experiment(std::string_view toml, const std::string& name, const std::string& where,
                           const ExperimentChanges& changes, const std::string& view) {
  const ExperimentReader reader(where);
  toml::table file =
      parse_toml(toml, where, "an experiment; `posattn experiments --show value-range` prints one");
  const std::vector<std::string> views = view_names(reader, file);
  if (view.empty()) return from_table(file, reader, name, where, changes);
  if (!contains(views, view)) {
    throw unknown_name(ExitCode::usage, "view", view, views, "in " + where);
  }
  file = view_table(reader, std::move(file), view);
  Experiment experiment = from_table(file, reader, view, where, changes);
  experiment.view_of = name;
  return experiment;
}

void check_views(std::string_view toml, const std::string& name, const std::string& where) {
  const std::vector<std::string> views =
      view_names(ExperimentReader(where), parse_toml(toml, where, "an experiment"));
  if (views.empty()) return;
  const Experiment experiment = read_experiment(toml, name, where);
  for (const std::string& view : views) {
    check_runs(read_experiment(toml, name, where, {}, view), experiment, where);
  }
}

}  // namespace posattn

// posattn scale

#include <algorithm>

#include "posattn/base/text.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/bounds/range_split.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/summary.h"
#include "posattn/model/file/model_file.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

using bounds::RangePoint;

struct ScaledModel {
  std::string path;
  ModelSpec spec;
  ModelOrigin origin;
  bounds::RangeSplit split;
};

// Models of one task, architecture and length, as the seeds of a fleet.
struct ScaledGroup {
  std::string task, architecture;
  int length = 0;
  std::vector<const ScaledModel*> models = {};

  std::string name() const { return fmt::format("{}, {}, length {}", task, architecture, length); }

  template <class Get>
  Spread over(Get get) const {
    std::vector<double> values;
    for (const ScaledModel* model : models) values.push_back(get(model->split));
    return spread_of(values);
  }
  // The spread of a number of point `index` over the models.
  template <class Get>
  Spread at(size_t index, Get get) const {
    return over([&](const bounds::RangeSplit& split) { return get(split.points[index]); });
  }
  size_t points() const { return models.front()->split.points.size(); }
  double scale(size_t index) const { return models.front()->split.points[index].c; }
  Spread without_biases() const {
    return over([](const bounds::RangeSplit& split) { return split.without_biases; });
  }
};

double over_square(const RangePoint& point) { return point.error / (point.c * point.c); }

std::vector<ScaledGroup> scaled_groups(const std::vector<ScaledModel>& models) {
  std::vector<ScaledGroup> groups;
  for (const ScaledModel& model : models) {
    const ScaledGroup wanted{model.origin.task, preset_name(model.spec), model.origin.length};
    auto group = std::ranges::find_if(
        groups, [&](const ScaledGroup& known) { return known.name() == wanted.name(); });
    if (group == groups.end()) group = groups.insert(group, wanted);
    group->models.push_back(&model);
  }
  return groups;
}

std::string scale_table(const ScaledGroup& group) {
  TextTable table({"c", "MSE", "MSE / c^2", "from weights", "from biases", "biases add (rms)"}, 0);
  for (size_t i = 0; i < group.points(); ++i) {
    const auto median = [&](auto get) { return short_number(group.at(i, get).median); };
    table.add_row({short_number(group.scale(i)),
                   median([](const RangePoint& point) { return point.error; }), median(over_square),
                   median([](const RangePoint& point) { return point.from_weights; }),
                   median([](const RangePoint& point) { return point.from_biases; }),
                   median([](const RangePoint& point) { return point.bias_output; })});
  }
  return table.to_string();
}

// How far the biases carry: what they save inside is lost far outside.
std::string scale_summary(const std::vector<ScaledGroup>& groups) {
  TextTable table({"MSE / c^2", fmt::format("c = {}", short_number(groups[0].scale(0))),
                   fmt::format("c = {}", short_number(groups[0].scale(groups[0].points() - 1))),
                   "without biases"});
  for (const ScaledGroup& group : groups) {
    table.add_row({group.name(), short_number(group.at(0, over_square).median),
                   short_number(group.at(group.points() - 1, over_square).median),
                   short_number(group.without_biases().median)});
  }
  return table.to_string();
}

// Models of one task, architecture and length are summarised by medians.
std::string scale_text(const std::vector<ScaledModel>& models, int64_t samples) {
  std::string text;
  double deviation = 0;
  const std::vector<ScaledGroup> groups = scaled_groups(models);
  for (const ScaledGroup& group : groups) {
    text += fmt::format("{}: {}\n{}\n", group.name(),
                        group.models.size() == 1
                            ? group.models[0]->path
                            : fmt::format("medians of {} models", group.models.size()),
                        scale_table(group));
    for (const ScaledModel* model : group.models) {
      deviation = std::max(deviation, model->split.deviation);
    }
  }
  if (groups.size() > 1) text += scale_summary(groups) + "\n";
  return text + fmt::format(
                    "f_b(c x) = c f_(b/c)(x), b the biases: on these {} samples within {} of the\n"
                    "largest output. From weights: c^2 times the error at 1 without biases.\n",
                    samples, short_number(deviation));
}

std::string scale_json(const std::vector<ScaledModel>& models, int64_t samples) {
  Json list = Json::array();
  for (const ScaledModel& model : models) {
    Json scales = Json::array();
    for (const RangePoint& point : model.split.points) {
      scales.push_back({{"c", point.c},
                        {"mse", point.error},
                        {"from_weights", point.from_weights},
                        {"from_biases", point.from_biases},
                        {"bias_output", point.bias_output}});
    }
    list.push_back({{"path", model.path},
                    {"task", model.origin.task},
                    {"architecture", preset_name(model.spec)},
                    {"length", model.origin.length},
                    {"mse_without_biases", model.split.without_biases},
                    {"deviation", model.split.deviation},
                    {"scales", scales}});
  }
  return json_text({{"samples", samples}, {"models", list}});
}

// MSE / c^2 against c, and dotted what it tends to; "" where no point can be drawn.
std::string scale_figure(const std::vector<ScaledModel>& models) {
  FigureRequest request{.name = "scale",
                        .title = "Error over c^2 against the scale c of the input",
                        .x_label = "c (samples times c)",
                        .y_label = "mean squared error / c^2",
                        .lines = {},
                        .logarithmic_x = true};
  const std::vector<ScaledGroup> groups = scaled_groups(models);
  const bool one_task =
      std::ranges::all_of(groups, [&](const auto& group) { return group.task == groups[0].task; });
  std::vector<StyledLine> lines;
  for (const ScaledGroup& group : groups) lines.push_back({group.architecture});
  const std::vector<int> styles = styles_of(lines);
  for (size_t g = 0; g < groups.size(); ++g) {
    const ScaledGroup& group = groups[g];
    const std::string label =
        one_task ? group.architecture : fmt::format("{}, {}", group.task, group.architecture);
    FigureLine measured{.label = label, .style = styles[g], .points = {}};
    FigureLine limit{
        .label = label + ", without biases", .style = styles[g], .secondary = true, .points = {}};
    for (size_t i = 0; i < group.points(); ++i) {
      const Spread error = group.at(i, over_square), without = group.without_biases();
      measured.points.push_back({group.scale(i), error.median, error.minimum, error.maximum});
      limit.points.push_back({group.scale(i), without.median, without.median, without.median});
    }
    const bool biased = group.at(0, [](const RangePoint& p) { return p.bias_output; }).maximum > 0;
    request.lines.push_back(std::move(measured));
    if (biased) request.lines.push_back(std::move(limit));
  }
  return draw_figure(request);
}

struct ScaleFlags {
  std::vector<std::string> models;
  std::string scales = "1,2,3,5,10,20,30,50,100,200,300,500,1000", output;
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 0;
  bool json = false;
  ModelHints hints;
};

std::vector<double> scales_of(const ScaleFlags& flags) {
  constexpr double largest = 1e6;  // beyond, float has too few digits for what biases add
  std::vector<double> scales = parse_scales(flags.scales);
  for (const double c : scales) {
    if (c > largest) {
      throw Error(ExitCode::usage, fmt::format("--scales: {}", c),
                  fmt::format("up to {}", largest));
    }
  }
  return scales;
}

// Refuses a model that does not scale with its input, and names those that do.
void check_scaling(const std::vector<std::filesystem::path>& paths, const ModelHints& hints) {
  std::string problem;
  std::vector<std::string> scaling;
  for (const std::filesystem::path& path : paths) {
    const auto reason = bounds::scaling_broken_by(load_model(path, hints).spec);
    if (!reason) {
      scaling.push_back(path.string());
    } else if (problem.empty()) {
      problem = fmt::format("'{}' has {}", path.string(), *reason);
    }
  }
  if (problem.empty()) return;
  const size_t more = scaling.empty() ? 0 : scaling.size() - 1;
  throw Error(ExitCode::configuration, problem,
              "values alone in the input, attention that does not see their scale, ReLUs",
              scaling.empty() ? "as --architecture positional or scale-free"
              : more == 0     ? fmt::format("name {} alone", scaling[0])
                          : fmt::format("name those that scale: {} and {} more", scaling[0], more));
}

ScaledModel scaled_model(const std::filesystem::path& path, const std::vector<double>& scales,
                         const ScaleFlags& flags) {
  const Model model = load_model(path, flags.hints);
  if (model.origin.task.empty()) {
    throw Error(ExitCode::data,
                fmt::format("'{}' does not say which task it was made for", path.string()),
                "a task", "add --task NAME ('posattn tasks' lists them)");
  }
  const Task& task = task_of(model.origin, path.string());
  return {.path = path.string(),
          .spec = model.spec,
          .origin = model.origin,
          .split = bounds::split_range({.model = &model,
                                        .task = &task,
                                        .scales = scales,
                                        .samples = flags.samples,
                                        .seed = flags.seed,
                                        .threads = thread_count(flags.threads)})};
}

ExitCode scale_models(const ScaleFlags& flags) {
  constexpr int64_t most_samples = 1'000'000;
  if (flags.samples < 1 || flags.samples > most_samples) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", flags.samples),
                fmt::format("1 to {}", most_samples));
  }
  check_ending("--output", flags.output, ".svg");
  refuse_with_standard_output(flags.output, flags.json, "--json");
  const std::vector<double> scales = scales_of(flags);
  std::vector<ScaledModel> models;
  const std::vector<std::filesystem::path> paths = find_named_models(flags.models);
  check_scaling(paths, flags.hints);
  for (const std::filesystem::path& path : paths) {
    models.push_back(scaled_model(path, scales, flags));
  }
  if (!flags.output.empty()) {
    const std::string figure = scale_figure(models);
    if (figure.empty()) {
      throw Error(ExitCode::failed, "no point can be drawn", "an error above 0 at some c");
    }
    write_result(flags.output, figure);
    if (is_standard_output(flags.output)) return ExitCode::done;
  }
  write_output(flags.json ? scale_json(models, flags.samples) : scale_text(models, flags.samples));
  if (!flags.json) say_written("figure", flags.output);
  return ExitCode::done;
}

void add_scale_options(CLI::App& command, ScaleFlags& flags) {
  argument(command, "MODEL", flags.models, "Model files, run folders or folders of runs")
      ->required();
  option(command, "--scales", flags.scales, "LIST [1,2,3,5,...,1000]", "Scales c, as 1..10,1000");
  add_output_option(command, flags.output, "A figure; '-': standard output", "FILE.svg");
  option(command, "--samples", flags.samples, "INT [1000]", "Samples");
  option(command, "--seed", flags.seed, "INT [0]", "Seed of the samples");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_scale(
    {.name = "scale",
     .group = Group::theory,
     .summary = "Split a model's error outside its training range into parts of weights and biases",
     .examples = {"posattn scale runs/sort/positional-seed0",
                  "posattn scale runs/sort/positional-seed0 runs/sort/homogeneous-seed0 "
                  "-o scale.svg",
                  "posattn scale sort.safetensors --scales 1..10,1000 --samples 10000 --json"},
     .details = "With values alone in the input, attention that does not see their scale and "
                "ReLUs, a network "
                "with biases b satisfies f_b(c x) = c f_(b/c)(x). Far outside its range it behaves "
                "as if it had no biases (docs/bounds-range.md). `evaluate` draws new samples for "
                "each c; this command multiplies the same samples by c. Models and tasks that do "
                "not scale with their input are refused with exit code 3."},
    add_scale_options, scale_models);

}  // namespace
}  // namespace posattn

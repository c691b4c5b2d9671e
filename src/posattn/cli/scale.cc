// posattn scale

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "posattn/base/text.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/bounds/range_split.h"
#include "posattn/bounds/scale_law.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/summary.h"
#include "posattn/model/file/model_file.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

using bounds::LayerScaling;
using bounds::RangePoint;
using bounds::ScaleLaw;

std::string degree_text(std::optional<int> degree) {
  return degree ? fmt::format("degree {}", *degree) : "no degree";
}

std::string law_text(const ModelSpec& spec, const ScaleLaw& law) {
  std::string text;
  const auto line = [](const LayerScaling& layer) {
    return fmt::format("{}: scores of {}, attention of {}", kind_text(layer.kind),
                       degree_text(layer.scores), degree_text(layer.attention));
  };
  for (size_t first = 0, end = 0; first < law.layers.size(); first = end) {
    while (end < law.layers.size() && law.layers[end].kind == law.layers[first].kind) ++end;
    text += fmt::format("layers {} to {}, {}\n", first, end - 1, line(law.layers[first]));
  }
  if (spec.wrap == Wrap::scale) {
    return text +
           "homogeneous, f(c x) = c f(x): the wrap divides the scale out, whatever is inside\n";
  }
  if (law.broken_by.empty()) return text + "homogeneous: f(c x) = c f(x)\n";
  return text + fmt::format("not homogeneous: {}\n", law.broken_by);
}

void add_law(const ScaleLaw& law, Json& model) {
  Json layers = Json::array();
  const auto degree = [](std::optional<int> value) { return value ? Json(*value) : Json(); };
  for (const LayerScaling& layer : law.layers) {
    layers.push_back({{"kind", kind_text(layer.kind)},
                      {"scores_degree", degree(layer.scores)},
                      {"attention_degree", degree(layer.attention)}});
  }
  model["homogeneous"] = law.broken_by.empty();
  model["broken_by"] = law.broken_by;
  model["layers"] = layers;
}

// A name that tells models apart which differ in what scaling means to them.
std::string name_of(const ModelSpec& spec) {
  std::string name = preset_name(spec);
  if (name == "custom") {
    name = spec.kinds.empty() ? kind_text(spec) : spec.kinds;
    if (spec.biases == Biases::none) name += " without biases";
  }
  return spec.wrap == Wrap::none ? name : fmt::format("{}, wrap {}", name, to_string(spec.wrap));
}

struct ScaledModel {
  std::string path;
  ModelSpec spec;
  ModelOrigin origin;
  ScaleLaw law;
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
  bool cooled() const { return models.front()->split.cooled; }
  Spread without_biases() const {
    return over([](const bounds::RangeSplit& split) { return split.without_biases; });
  }
};

double over_square(const RangePoint& point) { return point.error / (point.c * point.c); }
double measured_over_square(const RangePoint& point) {
  return point.measured / (point.c * point.c);
}
double tested(const RangePoint& point) { return point.tested; }
double predicted(const RangePoint& point) { return point.predicted; }

std::vector<ScaledGroup> scaled_groups(const std::vector<ScaledModel>& models) {
  std::vector<ScaledGroup> groups;
  for (const ScaledModel& model : models) {
    const ScaledGroup wanted{model.origin.task, name_of(model.spec), model.origin.length};
    auto group = std::ranges::find_if(
        groups, [&](const ScaledGroup& known) { return known.name() == wanted.name(); });
    if (group == groups.end()) group = groups.insert(group, wanted);
    group->models.push_back(&model);
  }
  return groups;
}

using Column = std::pair<const char*, double (*)(const RangePoint&)>;
constexpr Column split_columns[] = {
    {"MSE", [](const RangePoint& point) { return point.error; }},
    {"MSE / c^2", over_square},
    {"from weights", [](const RangePoint& point) { return point.from_weights; }},
    {"from biases", [](const RangePoint& point) { return point.from_biases; }},
    {"biases add (rms)", [](const RangePoint& point) { return point.bias_output; }},
    {"evaluate", tested},
    {"predicted", predicted}};
constexpr Column cooled_columns[] = {
    {"MSE", [](const RangePoint& point) { return point.measured; }},
    {"c^2 MSE cooled", [](const RangePoint& point) { return point.error; }},
    {"MSE / c^2", measured_over_square},
    {"cooled", over_square},
    {"evaluate", tested},
    {"predicted", predicted}};

std::string scale_table(const ScaledGroup& group) {
  const std::span<const Column> columns =
      group.cooled() ? std::span<const Column>(cooled_columns) : split_columns;
  std::vector<std::string> header = {"c"};
  for (const auto& [name, get] : columns) header.emplace_back(name);
  TextTable table(header, 0);
  for (size_t i = 0; i < group.points(); ++i) {
    std::vector<std::string> row = {short_number(group.scale(i))};
    for (const auto& [name, get] : columns) {
      const double median = group.at(i, get).median;
      row.push_back(std::isnan(median) ? "-" : short_number(median));
    }
    table.add_row(row);
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
    text += fmt::format("{}: {}\n{}\n{}\n", group.name(),
                        group.models.size() == 1
                            ? group.models[0]->path
                            : fmt::format("medians of {} models", group.models.size()),
                        law_text(group.models[0]->spec, group.models[0]->law), scale_table(group));
    for (const ScaledModel* model : group.models) {
      deviation = std::max(deviation, model->split.deviation);
    }
  }
  if (groups.size() > 1) text += scale_summary(groups) + "\n";
  const auto any = [&](bool cooled) {
    return std::ranges::any_of(groups, [&](const auto& group) { return group.cooled() == cooled; });
  };
  if (any(false)) {
    text +=
        "f_b(c x) = c f_(b/c)(x), b the biases. From weights: c^2 times the error at 1 without\n"
        "biases.\n";
  }
  if (any(true)) {
    text +=
        "f_b(c x) = c times f_(b/c)(x) with attention cooled: c times the weights of queries and\n"
        "keys, so c^2 times the inverse temperature. Cooled: the error of that network on x.\n";
  }
  return text + fmt::format(
                    "On these {} samples the identity holds within {} of the largest output.\n"
                    "Evaluate: new samples that leave the training range; predicted: from MSE.\n",
                    samples, short_number(deviation));
}

std::string scale_json(const std::vector<ScaledModel>& models, int64_t samples) {
  Json list = Json::array();
  for (const ScaledModel& model : models) {
    Json scales = Json::array();
    for (const RangePoint& point : model.split.points) {
      Json& scale = scales.emplace_back();
      scale["c"] = point.c;
      if (model.split.cooled) {
        scale["mse"] = point.measured;
        scale["mse_cooled"] = point.error / (point.c * point.c);
      } else {
        scale["mse"] = point.error;
        scale["from_weights"] = point.from_weights;
        scale["from_biases"] = point.from_biases;
        scale["bias_output"] = point.bias_output;
      }
      scale["evaluate"] = point.tested;
      scale["predicted"] = point.predicted;
    }
    const char* limit = model.split.cooled ? "mse_limit" : "mse_without_biases";
    Json& found = list.emplace_back();
    found = {{"path", model.path},
             {"task", model.origin.task},
             {"architecture", preset_name(model.spec)},
             {"length", model.origin.length},
             {limit, model.split.without_biases},
             {"deviation", model.split.deviation},
             {"scales", scales}};
    add_law(model.law, found);
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
    FigureLine limit{.label = label + (group.cooled() ? ", as c grows" : ", without biases"),
                     .style = styles[g],
                     .secondary = true,
                     .points = {}};
    FigureLine cooled{.label = label + ", cooled, at c = 1",
                      .style = in_shade(styles[g], Shade::darkest),
                      .points = {}};
    for (size_t i = 0; i < group.points(); ++i) {
      const Spread error = group.at(i, group.cooled() ? measured_over_square : over_square),
                   without = group.without_biases(), other = group.at(i, over_square);
      measured.points.push_back({group.scale(i), error.median, error.minimum, error.maximum});
      limit.points.push_back({group.scale(i), without.median, without.median, without.median});
      cooled.points.push_back({group.scale(i), other.median, other.median, other.median, true});
    }
    const bool biased = group.cooled() ||
                        group.at(0, [](const RangePoint& p) { return p.bias_output; }).maximum > 0;
    request.lines.push_back(std::move(measured));
    if (group.cooled()) request.lines.push_back(std::move(cooled));
    if (biased) request.lines.push_back(std::move(limit));
  }
  return draw_figure(request);
}

// What a model is, without any sample.
ExitCode write_laws(const std::vector<std::filesystem::path>& paths, const ModelHints& hints,
                    bool json) {
  std::string text;
  Json list = Json::array();
  for (const std::filesystem::path& path : paths) {
    const Model model = load_model(path, hints);
    const ScaleLaw law = bounds::scale_law(model);
    text +=
        fmt::format("{}: {}\n{}", path.string(), name_of(model.spec), law_text(model.spec, law));
    add_law(law, list.emplace_back(
                     Json{{"path", path.string()}, {"architecture", preset_name(model.spec)}}));
  }
  write_output(json ? json_text({{"models", list}}) : text);
  return ExitCode::done;
}

struct ScaleFlags {
  std::vector<std::string> models;
  std::string scales = "1,2,3,5,10,20,30,50,100,200,300,500,1000", output;
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 0;
  bool degrees = false, json = false;
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
    const Model model = load_model(path, hints);
    if (!bounds::cooling_broken_by(model.spec)) {
      scaling.push_back(path.string());
    } else if (problem.empty()) {
      problem = fmt::format("'{}' has {}", path.string(), bounds::scale_law(model).broken_by);
    }
  }
  if (problem.empty()) return;
  const size_t more = scaling.empty() ? 0 : scaling.size() - 1;
  throw Error(ExitCode::configuration, problem,
              "values alone in the input, attention that averages them, ReLUs",
              scaling.empty() ? "as --architecture positional or scale-free, or --wrap scale"
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
          .law = bounds::scale_law(model),
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
  if (flags.degrees) return write_laws(paths, flags.hints, flags.json);
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
  CLI::Option* degrees =
      command.add_flag("--degrees", flags.degrees,
                       "Only say how each layer answers a change of scale, of any model");
  option(command, "--scales", flags.scales, "LIST [1,2,3,5,...,1000]", "Scales c, as 1..10,1000");
  add_output_option(command, flags.output, "A figure; '-': standard output", "FILE.svg")
      .excludes(degrees);
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
                  "posattn scale sort.safetensors --scales 1..10,1000 --samples 10000 --json",
                  "posattn scale runs/sort --degrees"},
     .details = "With values alone in the input, attention that does not see their scale and "
                "ReLUs, a network "
                "with biases b satisfies f_b(c x) = c f_(b/c)(x). Far outside its range it behaves "
                "as if it had no biases (docs/bounds-range.md). `evaluate` draws new samples for "
                "each c; this command multiplies the same samples by c, and says what follows for "
                "`evaluate`.\n\nWhere attention sees the scale, as architectures m2 to m4, the "
                "error at c is c^2 times that inside the range with cooled attention: queries and "
                "keys times c. Both are measured. With --wrap scale every model is homogeneous.\n\n"
                "Models and tasks that do not scale with their input are refused with exit code 3; "
                "--degrees says why, layer by layer."},
    add_scale_options, scale_models);

}  // namespace
}  // namespace posattn

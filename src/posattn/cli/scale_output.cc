#include "posattn/cli/scale_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/evaluation/summary.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

using bounds::RangePoint;

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

}  // namespace

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
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ScaledModel& model : models) {
    nlohmann::ordered_json scales = nlohmann::ordered_json::array();
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

}  // namespace posattn

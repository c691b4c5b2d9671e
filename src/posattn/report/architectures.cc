#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "posattn/report/page/report_input.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr size_t most_points = 400;  // per curve; more cannot be seen

using ByEpoch = std::map<int64_t, std::vector<double>>;

std::vector<BandPoint> thinned_bands(const ByEpoch& losses) {
  std::vector<BandPoint> points;
  const size_t step = losses.size() / most_points + 1;
  size_t index = 0;
  for (const auto& [epoch, values] : losses) {
    if (index++ % step != 0 && index != losses.size()) continue;
    const Spread spread = spread_of(values);
    points.push_back({static_cast<double>(epoch), spread.median, spread.minimum, spread.maximum});
  }
  return points;
}

// Axes that tasks state share their plural, and their names may hold anything.
std::string identifier(const EvaluationAxis& axis) {
  std::string text = axis.plural;
  std::ranges::copy_if(axis.name, std::back_inserter(text),
                       [](unsigned char c) { return std::isalnum(c) != 0; });
  return text;
}

}  // namespace

std::string group_name(const RunReport& run) {
  return run.execution.empty() ? run.architecture : run.architecture + " (" + run.execution + ")";
}

std::vector<ArchitectureSummary> group_by_architecture(const ReportInput& input) {
  std::vector<ArchitectureSummary> groups;
  for (const RunReport& run : input.runs) {
    const std::string name = group_name(run);
    auto group = std::ranges::find(groups, name, &ArchitectureSummary::name);
    if (group == groups.end()) {
      group = groups.insert(group, ArchitectureSummary{name, {}, 0, input.loss});
    }
    group->runs.push_back(&run);
    if (run.status != "done") ++group->unfinished;
  }
  return groups;
}

std::map<double, Spread> ArchitectureSummary::tests(std::string_view axis,
                                                    const Metric& metric) const {
  std::map<double, std::vector<double>> values;
  for (const RunReport* run : runs) {
    for (const double x : tested_values(run->tests, axis)) {
      const auto value = find_value(run->tests, {.axis = axis, .x = x, .metric = metric.name});
      if (value) values[x].push_back(*value);
    }
  }
  std::map<double, Spread> spreads;
  for (const auto& [x, of_runs] : values) spreads[x] = spread_of(of_runs);
  return spreads;
}

std::vector<EvaluationAxis> shown_axes(const ReportInput& input) {
  std::vector<EvaluationAxis> axes;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(axes, name, &EvaluationAxis::name) != axes.end()) return;
    axes.push_back(axis_named(name));
  };
  for (const EvaluationAxis* axis : evaluation_axes()) {
    const bool is_tested = std::ranges::any_of(input.runs, [&](const RunReport& run) {
      return !tested_values(run.tests, axis->name).empty();
    });
    if (is_tested) add(axis->name);
  }
  for (const RunReport& run : input.runs) {
    for (const std::string& name : tested_axes(run.tests)) add(name);
  }
  return axes;
}

std::vector<int> styles_of(const std::vector<ArchitectureSummary>& architectures) {
  std::vector<StyledLine> lines;
  for (const ArchitectureSummary& group : architectures) {
    lines.push_back({group.runs.front()->architecture});
  }
  return styles_of(lines);
}

const Metric& loss_of(const std::vector<ArchitectureSummary>& architectures) {
  return training_loss(architectures.front().loss);
}

FigureRequest test_figure(const std::vector<ArchitectureSummary>& architectures,
                          const EvaluationAxis& axis, const Metric& metric) {
  FigureRequest request{.name = identifier(axis),
                        .title = fmt::format("Test error against the {}", axis.words),
                        .x_label = axis.words,
                        .y_label = std::string(metric.words),
                        .markers = true,
                        .lines = {}};
  if (!metric.logarithmic) request.greatest = metric.greatest;
  const std::vector<int> styles = styles_of(architectures);
  for (const ArchitectureSummary& architecture : architectures) {
    FigureLine line{.label = architecture.name,
                    .style = styles[request.lines.size()],
                    .secondary = false,
                    .points = {}};
    for (const auto& [x, spread] : architecture.tests(axis.name, metric)) {
      line.points.push_back({x, spread.median, spread.minimum, spread.maximum});
    }
    request.lines.push_back(std::move(line));
  }
  return request;
}

FigureRequest loss_figure(const std::vector<ArchitectureSummary>& architectures) {
  FigureRequest request{.name = "losses",
                        .title = "Loss during training",
                        .x_label = "epoch",
                        .y_label = std::string(loss_of(architectures).words),
                        .markers = false,
                        .lines = {}};
  const std::vector<int> styles = styles_of(architectures);
  for (size_t i = 0; i < architectures.size(); ++i) {
    ByEpoch train, validation;
    for (const RunReport* run : architectures[i].runs) {
      for (const LossPoint& point : run->curve) {
        train[point.epoch].push_back(point.train);
        if (point.validation) validation[point.epoch].push_back(*point.validation);
      }
    }
    const std::string& name = architectures[i].name;
    request.lines.push_back({name + ", training", styles[i], false, thinned_bands(train)});
    if (!validation.empty()) {
      request.lines.push_back({name + ", validation", styles[i], true, thinned_bands(validation)});
    }
  }
  return request;
}

}  // namespace posattn

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "posattn/evaluation/summary.h"
#include "posattn/report/experiment/figure.h"
#include "posattn/report/experiment/panels.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

using bounds::BoundReport;
using bounds::RunBounds;

// A curve over x: the median and the range of `value` over the runs of one task and line.
FigureLine curve_over_runs(const bounds::ExperimentBounds& found, const std::string& task,
                           const std::string& line,
                           const std::function<double(const BoundReport&)>& value) {
  std::map<double, std::vector<double>> by_x;
  for (const RunBounds& run : found.runs) {
    if (run.run.task == task && run.run.line == line) by_x[*run.run.x].push_back(value(run.report));
  }
  FigureLine result;
  for (const auto& [x, values] : by_x) {
    const Spread spread = spread_of(values);
    result.points.push_back(
        {.x = x, .median = spread.median, .low = spread.minimum, .high = spread.maximum});
  }
  return result;
}

// Spaced so that a linear axis would crowd them.
bool spans_decades(const std::vector<double>& values) {
  return values.front() > 0 && values.back() >= 10 * values.front();
}

}  // namespace

std::string draw_bounds(const Experiment& experiment, const bounds::ExperimentBounds& found,
                        const std::string& task) {
  FigureRequest request{.name = "bounds",
                        .title = fmt::format("{}: {}", task, experiment.title),
                        .x_label = experiment.axis.label,
                        .y_label = "gap of the clipped loss",
                        .markers = true,
                        .lines = {},
                        .logarithmic_x = spans_decades(experiment.axis.values)};
  const std::vector<int> styles = line_styles(experiment);
  for (size_t i = 0; i < experiment.lines.size(); ++i) {
    const ExperimentLine& line = experiment.lines[i];
    const auto add = [&](const std::string& label, Shade shade,
                         const std::function<double(const BoundReport&)>& value) {
      FigureLine curve = curve_over_runs(found, task, line.name, value);
      curve.label = fmt::format("{} {}", line.name, label);
      curve.style = in_shade(styles[i], shade);
      request.lines.push_back(std::move(curve));
    };
    add("norms", Shade::darkest,
        [](const BoundReport& report) { return std::exp(report.by_norms.log_gap); });
    add("count", Shade::pale, [](const BoundReport& report) { return report.by_count.gap; });
    add("gap", Shade::plain, [](const BoundReport& report) {
      return report.measured ? std::abs(report.measured->gap()) : NAN;
    });
  }
  return draw_figure(request);
}

std::string draw_crossing(const bounds::Crossing& crossing) {
  FigureRequest request{.name = "crossing",
                        .title =
                            "Bounds by norms against the query-key norm: positional ones do "
                            "not depend on it",
                        .x_label = "largest query-key norm of the standard network",
                        .y_label = "bound on the gap",
                        .markers = false,
                        .lines = {},
                        .logarithmic_x = true};
  std::vector<StyledLine> lines;
  for (const bounds::StandardCurve& curve : crossing.standard) {
    lines.push_back({"standard", static_cast<double>(curve.hops)});
  }
  for (const bounds::PositionalLevel& level : crossing.positional) {
    lines.push_back({"positional", static_cast<double>(level.depth)});
  }
  const std::vector<int> styles = styles_of(lines);
  double first = INFINITY, last = 0;
  for (const bounds::StandardCurve& curve : crossing.standard) {
    FigureLine line{.label = fmt::format("standard, k = {}", curve.hops),
                    .style = styles[request.lines.size()],
                    .points = {}};
    for (size_t k = 0; k < curve.log_norms.size(); ++k) {
      const double x = std::exp(curve.log_norms[k]), y = std::exp(curve.log_bounds[k]);
      line.points.push_back({.x = x, .median = y, .low = y, .high = y});
      first = std::min(first, x);
      last = std::max(last, x);
    }
    request.lines.push_back(std::move(line));
  }
  for (const bounds::PositionalLevel& level : crossing.positional) {
    const double y = std::exp(level.log_bound);
    request.lines.push_back({.label = fmt::format("positional, L = {}", level.depth),
                             .style = styles[request.lines.size()],
                             .points = {{.x = first, .median = y, .low = y, .high = y},
                                        {.x = last, .median = y, .low = y, .high = y}}});
  }
  return draw_figure(request);
}

}  // namespace posattn

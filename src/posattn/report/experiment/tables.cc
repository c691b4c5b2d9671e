#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/embedded_file.h"
#include "posattn/report/experiment/panels.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/markup.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

constexpr std::string_view nothing = "<td>\u2013</td>";

std::string value_text(double value, const Metric& metric) {
  if (!std::isfinite(value)) return "diverged";
  return metric.percent ? fmt::format("{:.1f} %", 100 * value) : three_digits(value);
}

std::string spread_text(const PointSummary& point, const Metric& metric) {
  std::string text = value_text(point.median, metric);
  if (point.runs > 1 && std::isfinite(point.median)) {
    text += fmt::format("<small>{} \u2013 {}</small>", value_text(point.minimum, metric),
                        value_text(point.maximum, metric));
  }
  return text;
}

std::string growth_cell(const Growth& growth) {
  if (!std::isfinite(growth.exponent)) return std::string(nothing);
  if (!std::isfinite(growth.error)) return fmt::format("<td>{:.2f}</td>", growth.exponent);
  return fmt::format("<td>{:.2f}<small>\u00b1 {:.2f}</small></td>", growth.exponent, growth.error);
}

// A heading above the rows of each task, so that the names take one column only; `columns` in all.
std::string task_row(const Experiment& experiment, size_t task, size_t columns) {
  return fmt::format("<tr class=\"group\"><th colspan=\"{}\"><span>{}</span></th></tr>\n", columns,
                     escape_markup(experiment.tasks[task]));
}

std::string name_cell(const Experiment& experiment, size_t line) {
  return fmt::format("<td>{}{}</td>", style_dot(line_styles(experiment)[line]),
                     escape_markup(experiment.lines[line].name));
}

std::string run_count(const Curve& curve) {
  size_t least = curve.points.front().runs.size(), most = least;
  for (const CurvePoint& point : curve.points) {
    least = std::min(least, point.runs.size());
    most = std::max(most, point.runs.size());
  }
  return least == most ? fmt::format("{}", most) : fmt::format("{} \u2013 {}", least, most);
}

const ComparedCurve* compared_curve(const Comparison& comparison, const std::string& task,
                                    const std::string& line) {
  for (const ComparedCurve& curve : comparison.curves) {
    if (curve.task == task && curve.line == line && curve.split == Split::test) return &curve;
  }
  return nullptr;
}

std::string verdict_cells(const ComparedCurve* curve, const Experiment& experiment) {
  if (!curve) {
    return fmt::format("{0}{0}{0}{0}<td>not published</td>", nothing);
  }
  const std::string ratio =
      std::isfinite(curve->log10_ratio) ? three_digits(std::pow(10, curve->log10_ratio)) : "\u2013";
  return fmt::format("<td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td>", ratio,
                     curve->agreeing, curve->points.size(), curve->within_factor,
                     curve->in_quantiles, verdict_text(curve->agrees(), experiment));
}

// The paper's experiment as a whole, not what --quick or --epochs made of it.
const ExperimentResults* find_whole(const std::vector<ExperimentResults>& all,
                                    const std::string& name) {
  const auto found = std::ranges::find_if(all, [&](const ExperimentResults& results) {
    const Experiment& experiment = results.experiment;
    return experiment.is_embedded && experiment.name == name && experiment.reduction.empty();
  });
  return found == all.end() ? nullptr : &*found;
}

std::string measured_growth(const ExperimentResults* results) {
  double least = INFINITY, most = -INFINITY;
  size_t tasks = 0;
  if (results) {
    for (const std::string& task : results->experiment.tasks) {
      const double exponent = our_growth(*results, task, "positional").exponent;
      if (!std::isfinite(exponent)) continue;
      least = std::min(least, exponent);
      most = std::max(most, exponent);
      ++tasks;
    }
  }
  if (tasks == 0) return "";
  if (tasks == 1) return fmt::format(" Measured here: c<sup>{:.2f}</sup>, on one task.", least);
  return fmt::format(" Measured here: c<sup>{:.2f}</sup> to c<sup>{:.2f}</sup>, over {} tasks.",
                     least, most, tasks);
}

// The medians at c = 1 of both architectures on a task, and whether they differ: "" without both.
std::string measured_inside(const ExperimentResults& results, const std::string& task) {
  const auto median = [&](const char* line) {
    const Curve* curve = test_curve(results.curves, task, line);
    if (curve == nullptr) return double{NAN};
    const auto point = std::ranges::find(curve->points, std::optional<double>(1), &CurvePoint::x);
    return point == curve->points.end() ? NAN
                                        : summarise(results.experiment, *curve, *point).median;
  };
  const double positional = median("positional"), standard = median("standard");
  if (!std::isfinite(positional) || !std::isfinite(standard)) return "";
  std::string test;
  for (const PairedPoint& point : paired_points(results.curves, "positional", "standard")) {
    if (point.task != task || point.x != 1 || std::isnan(point.test.p_value)) continue;
    test = fmt::format(" (p = {:.2g}, paired by seed)", point.test.p_value);
  }
  return fmt::format("{}: standard {}, positional {}{}", task, three_digits(standard),
                     three_digits(positional), test);
}

// On the tasks where the standard model may be the better one there.
std::string measured_inside(const ExperimentResults* results) {
  if (!results) return "";
  std::vector<std::string> parts;
  for (const char* task : {"cumulative-min", "cumulative-max-subarray"}) {
    std::string part = measured_inside(*results, task);
    if (!part.empty()) parts.push_back(std::move(part));
  }
  if (parts.empty()) return "";
  return fmt::format(" Measured here at c = 1, medians: {}.", fmt::join(parts, "; "));
}

}  // namespace

std::string verdict_text(bool agrees, const Experiment& experiment) {
  if (agrees) return "agrees";
  return experiment.reduction.empty() ? "<b>differs</b>" : "reduced";
}

Growth our_growth(const ExperimentResults& results, const std::string& task,
                  const std::string& line) {
  std::vector<PointSummary> points;
  if (const Curve* curve = test_curve(results.curves, task, line)) {
    points = summarise(results.experiment, {*curve});
  }
  return growth_in_scale(points, task, line);
}

std::string median_table(const ExperimentResults& results) {
  const Experiment& experiment = results.experiment;
  std::string rows = "<tr><th>line</th><th>runs</th>";
  for (const double x : experiment.axis.values) rows += fmt::format("<th>{:g}</th>", x);
  rows += "</tr>\n";
  for (size_t task = 0; task < experiment.tasks.size(); ++task) {
    bool first = true;
    for (size_t line = 0; line < experiment.lines.size(); ++line) {
      const Curve* curve =
          test_curve(results.curves, experiment.tasks[task], experiment.lines[line].name);
      if (!curve) continue;
      if (first) rows += task_row(experiment, task, 2 + experiment.axis.values.size());
      first = false;
      rows += fmt::format("<tr>{}<td>{}</td>", name_cell(experiment, line), run_count(*curve));
      for (const double x : experiment.axis.values) {
        const auto point =
            std::ranges::find(curve->points, std::optional<double>(x), &CurvePoint::x);
        rows += point == curve->points.end()
                    ? std::string(nothing)
                    : fmt::format("<td>{}</td>",
                                  value_text(summarise(experiment, *curve, *point).median,
                                             *experiment.metric));
      }
      rows += "</tr>\n";
    }
  }
  return table_element("medians by " + experiment.axis.name(), rows, true);
}

std::string curve_table(const ExperimentResults& results, const Comparison& comparison) {
  const Experiment& experiment = results.experiment;
  const bool grows = has_growth(experiment);
  const bool compares = comparison.points > 0;
  if (!grows && !compares) return "";
  const size_t columns = 1 + (grows ? 1 : 0) + (grows && compares ? 1 : 0) + (compares ? 5 : 0);
  std::string rows = "<tr><th>line</th>";
  if (grows) rows += "<th>exponent of c</th>";
  if (grows && compares) rows += "<th>published</th>";
  if (compares) {
    rows +=
        "<th>ours / published</th><th>agree</th><th>within × 3</th>"
        "<th>in [q10, q90]</th><th>curve</th>";
  }
  rows += "</tr>\n";
  for (size_t task = 0; task < experiment.tasks.size(); ++task) {
    bool first = true;
    for (size_t line = 0; line < experiment.lines.size(); ++line) {
      const std::string &of = experiment.tasks[task], &name = experiment.lines[line].name;
      const ComparedCurve* compared = compared_curve(comparison, of, name);
      if (!compared && (!grows || !test_curve(results.curves, of, name))) continue;
      if (first) rows += task_row(experiment, task, columns);
      first = false;
      rows += "<tr>" + name_cell(experiment, line);
      if (grows) rows += growth_cell(our_growth(results, of, name));
      if (grows && compares) rows += growth_cell(growth_in_scale(results.published, of, name));
      if (compares) rows += verdict_cells(compared, experiment);
      rows += "</tr>\n";
    }
  }
  return table_element("curves", rows, true);
}

std::string disagreement_table(const Experiment& experiment, const Comparison& comparison) {
  std::string rows;
  for (const ComparedCurve& curve : comparison.curves) {
    if (curve.split != Split::test) continue;
    for (const ComparedPoint& point : curve.points) {
      if (point.agrees()) continue;
      rows += fmt::format(
          "<tr><td>{}</td><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "</tr>\n",
          escape_markup(curve.task), escape_markup(curve.line),
          point.ours.x ? fmt::format("{:g}", *point.ours.x) : "",
          spread_text(point.ours, *experiment.metric),
          spread_text(point.theirs, *experiment.metric),
          std::isfinite(point.ratio) ? three_digits(point.ratio) : "\u2013");
    }
  }
  if (rows.empty()) return "";
  return table_element(
      "points that do not agree",
      fmt::format("<tr><th>task</th><th class=\"name\">line</th><th>{}</th><th>ours</th>"
                  "<th>published</th><th>ratio</th></tr>\n",
                  escape_markup(experiment.axis.name())) +
          rows);
}

std::string audit_notes(const std::vector<ExperimentResults>& all) {
  const ExperimentResults* value_range = find_whole(all, "value-range");
  return fmt::format(fmt::runtime(page_asset("audit_notes.html")),
                     fmt::arg("measured_growth", measured_growth(value_range)),
                     fmt::arg("measured_inside", measured_inside(value_range)));
}

}  // namespace posattn

#include "posattn/report/experiment/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace posattn {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

BandPoint band(const Experiment& experiment, const PointSummary& point) {
  return {*point.x, point.median, point.minimum, point.maximum,
          point.runs == 1 && !experiment.axis.is_tested()};
}

std::vector<BandPoint> our_points(const Experiment& experiment, const std::vector<Curve>& curves,
                                  const std::string& task, const std::string& line) {
  std::vector<BandPoint> points;
  for (const double x : experiment.axis.values) points.push_back({x, none, none, none});
  const Curve* curve = test_curve(curves, task, line);
  if (curve == nullptr) return points;
  for (const CurvePoint& point : curve->points) {
    const auto place = std::ranges::find_if(
        points, [&](const BandPoint& other) { return point.x && other.x == *point.x; });
    if (place != points.end()) *place = band(experiment, summarise(experiment, *curve, point));
  }
  return points;
}

// Published points of the figure: those of the experiment's tasks, lines and axis.
bool is_shown(const Experiment& experiment, const PointSummary& point) {
  const auto& lines = experiment.lines;
  return point.split == Split::test && point.x && *point.x >= experiment.axis.values.front() &&
         *point.x <= experiment.axis.values.back() &&
         std::ranges::find(experiment.tasks, point.task) != experiment.tasks.end() &&
         std::ranges::find(lines, point.line, &ExperimentLine::name) != lines.end();
}

// "10", "5 to 10"
struct Count {
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;

  void add(int64_t count) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  std::string text() const {
    return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
  }
};

// The line is there, and all its values are 0.
bool is_zero(const std::vector<Curve>& curves, const std::string& line) {
  bool found = false;
  for (const Curve& curve : curves) {
    if (curve.line != line) continue;
    for (const CurvePoint& point : curve.points) {
      for (const auto& [seed, value] : point.runs) {
        if (value != 0) return false;
        found = true;
      }
    }
  }
  return found;
}

std::string runs(const std::string& count) { return count + (count == "1" ? " run" : " runs"); }

}  // namespace

std::vector<int> line_styles(const Experiment& experiment) {
  std::vector<StyledLine> lines;
  for (const ExperimentLine& line : experiment.lines) {
    RunConfig settings = experiment.settings;
    for (const auto& [key, value] : line.settings) {
      if (key == "architecture" || key == "depth") set_field(settings, key, value);
    }
    lines.push_back(line.is_baseline
                        ? StyledLine{line.name}
                        : StyledLine{settings.architecture, static_cast<double>(settings.depth)});
  }
  return styles_of(lines);
}

bool drawable(double value, const Metric& metric) {
  constexpr double most = 1e20;  // a network may overflow; gnuplot never ends with such an axis
  return std::abs(value) < most && (!metric.logarithmic || value > 0);
}

bool joined(const std::vector<BandPoint>& points, size_t index, const Metric& metric) {
  if (index == 0 || index >= points.size()) return false;
  const auto joins = [&metric](const BandPoint& point) {
    return drawable(point.median, metric) && !point.alone;
  };
  return joins(points[index - 1]) && joins(points[index]);
}

bool any_joined(const std::vector<BandPoint>& points, const Metric& metric) {
  for (size_t i = 1; i < points.size(); ++i) {
    if (joined(points, i, metric)) return true;
  }
  return false;
}

std::vector<Panel> panels_of(const Experiment& experiment, const std::vector<Curve>& curves,
                             const std::vector<PublishedPoint>& published) {
  std::vector<Panel> panels;
  for (const std::string& task : experiment.tasks) {
    Panel panel{task, {}};
    for (const ExperimentLine& line : experiment.lines) {
      PanelLine shown{our_points(experiment, curves, task, line.name), {}};
      for (const auto& [point, correction] : published) {
        if (point.task == task && point.line == line.name && is_shown(experiment, point)) {
          shown.published.push_back(band(experiment, point));
        }
      }
      std::ranges::sort(shown.published, {}, &BandPoint::x);
      panel.lines.push_back(std::move(shown));
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

std::optional<AxisRange> value_range(const Panel& panel, const Metric& metric) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const PanelLine& line : panel.lines) {
    for (const auto* points : {&line.ours, &line.published}) {
      for (const BandPoint& point : *points) {
        if (!drawable(point.median, metric)) continue;
        low = std::min(low, point.median);
        high = std::max(high, point.median);
        if (!metric.logarithmic) {
          high = std::max(high, point.high);
          continue;
        }
        if (drawable(point.low, metric))
          low = std::min(low, std::max(point.low, point.median / 100));
        if (point.high > 0) high = std::max(high, std::min(point.high, point.median * 100));
      }
    }
  }
  if (low > high) return {};
  if (!metric.logarithmic) return AxisRange{0, linear_axis(high, metric.greatest).end};
  const double first = std::floor(std::log10(low));
  return AxisRange{std::pow(10, first),
                   std::pow(10, std::max(first + 1, std::ceil(std::log10(high) - 1e-9)))};
}

bool is_clipped_below(const BandPoint& point, const Metric& metric, const AxisRange& range) {
  return metric.logarithmic && drawable(point.median, metric) && point.low < range.low;
}

bool is_clipped_above(const BandPoint& point, const Metric& metric, const AxisRange& range) {
  return metric.logarithmic && drawable(point.median, metric) && point.high > range.high;
}

bool has_clipped_point(const Panel& panel, const Metric& metric) {
  const std::optional<AxisRange> range = value_range(panel, metric);
  if (!range) return false;
  const auto clipped = [&](const BandPoint& point) {
    return is_clipped_below(point, metric, *range) || is_clipped_above(point, metric, *range);
  };
  return std::ranges::any_of(panel.lines, [&](const PanelLine& line) {
    return std::ranges::any_of(line.ours, clipped) || std::ranges::any_of(line.published, clipped);
  });
}

std::string figure_note(const Experiment& experiment, const std::vector<Curve>& curves,
                        const std::vector<PublishedPoint>& published) {
  Count ours, theirs;
  int64_t diverged = 0;  // points
  for (const Curve& curve : curves) {
    if (curve.split != Split::test || experiment.is_baseline(curve.line)) continue;
    for (const CurvePoint& point : curve.points) {
      ours.add(static_cast<int64_t>(point.runs.size()));
      diverged += point.diverged > 0;
    }
  }
  for (const PublishedPoint& point : published) {
    if (is_shown(experiment, point.point)) theirs.add(point.point.runs);
  }
  std::string note = "No finished run.";
  if (ours.most > 0) {
    const auto seeds = static_cast<int64_t>(experiment.seeds.size());
    note = ours.least < seeds
               ? fmt::format("{} of {} a point", ours.text(), runs(fmt::format("{}", seeds)))
               : runs(ours.text()) + " a point";
    note += ours.most > 1 ? ": median, with a band or bar from the smallest to the largest." : ".";
  }
  if (diverged > 0) {
    note += fmt::format(" Runs diverged at {} point{}.", diverged, diverged == 1 ? "" : "s");
  }
  for (const ExperimentLine& line : experiment.lines) {
    if (line.is_baseline && is_zero(curves, line.name)) {
      note += fmt::format(" {}: no error at all{}.", line.name,
                          experiment.metric->logarithmic ? ", which this axis cannot show" : "");
    }
  }
  if (theirs.most > 0) {
    note += " Thin, with open markers: the published results (" + runs(theirs.text()) + ").";
  }
  return note;
}

}  // namespace posattn

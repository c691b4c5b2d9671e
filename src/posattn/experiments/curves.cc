#include "posattn/experiments/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

std::vector<Split> splits_of(const Experiment& experiment) {
  if (!experiment.metric->is_loss) return {Split::test};
  return {Split::train, Split::validation, Split::test};
}

// What a run gives for a point; nothing while it is not finished.
std::optional<double> value_of(const std::optional<RunResult>& result, const MeasuredPlace& place) {
  if (!result || result->status == RunStatus::failed) return std::nullopt;
  if (result->status == RunStatus::diverged) return std::numeric_limits<double>::quiet_NaN();
  return find_value(result->measurements, place);
}

void add_run(CurvePoint& point, uint64_t seed, std::optional<double> value, const Metric& metric) {
  if (!value) {
    ++point.missing;
    return;
  }
  const bool diverged = std::isnan(*value);
  point.runs.emplace_back(seed, diverged ? metric.worst() : *value);
  if (diverged) ++point.diverged;
}

// The points of one curve by x; std::nullopt comes first.
using Points = std::map<std::optional<double>, CurvePoint>;

void add_run(Points& points, const Experiment& experiment, Split split, const ExperimentRun& run,
             const std::optional<RunResult>& result) {
  const ExperimentAxis& axis = experiment.axis;
  const Metric& metric = *experiment.metric;
  const auto add = [&](std::optional<double> x, const MeasuredPlace& place) {
    CurvePoint& point = points[x];
    point.x = x;
    add_run(point, static_cast<uint64_t>(run.config.seed), value_of(result, place), metric);
  };
  const auto test_at = [&](double x) {
    return MeasuredPlace{.axis = axis.test_axis.name, .x = x, .metric = metric.name};
  };
  if (split != Split::test) {
    add(run.x, {.split = split, .metric = metric.name});
  } else if (!axis.is_tested()) {
    add(run.x, test_at(axis.test_x));
  } else {
    for (const double x : axis.values) add(x, test_at(x));
  }
}

Curve finished_curve(const std::string& task, const std::string& line, Split split,
                     const Points& points) {
  Curve curve{.task = task, .line = line, .split = split, .points = {}};
  for (const auto& [x, point] : points) {
    if (point.runs.empty()) continue;
    curve.points.push_back(point);
    std::sort(curve.points.back().runs.begin(), curve.points.back().runs.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return curve;
}

}  // namespace

std::vector<Curve> curves_of(const Experiment& experiment, const FindResult& find) {
  const std::vector<Split> splits = splits_of(experiment);
  std::map<std::pair<std::string, std::string>, std::map<Split, Points>> found;
  for (const ExperimentRun& run : runs_of(experiment)) {
    const std::optional<RunResult> result = find(run.key);
    auto& of_line = found[{run.task, run.line}];
    for (const Split split : splits) add_run(of_line[split], experiment, split, run, result);
  }
  std::vector<Curve> curves;
  for (const std::string& task : experiment.tasks) {
    std::set<uint64_t> finished;  // seeds of the task
    for (const ExperimentLine& line : experiment.lines) {
      if (line.is_baseline) {
        if (finished.empty()) continue;
        curves.push_back(
            baseline_curve(experiment, task, line.name, {finished.begin(), finished.end()}));
        continue;
      }
      for (const Split split : splits) {
        Curve curve = finished_curve(task, line.name, split, found[{task, line.name}][split]);
        for (const CurvePoint& point : curve.points) {
          for (const auto& run : point.runs) finished.insert(run.first);
        }
        if (!curve.points.empty()) curves.push_back(std::move(curve));
      }
    }
  }
  return curves;
}

std::vector<Curve> curves_of(const Experiment& experiment, const ResultsDatabase& results) {
  return curves_of(experiment, [&](const std::string& key) { return results.find(key); });
}

const Curve* test_curve(const std::vector<Curve>& curves, const std::string& task,
                        const std::string& line) {
  const auto at = std::ranges::find_if(curves, [&](const Curve& curve) {
    return curve.task == task && curve.line == line && curve.split == Split::test;
  });
  return at == curves.end() ? nullptr : &*at;
}

PointSummary summarise(const Experiment& experiment, const Curve& curve, const CurvePoint& point) {
  std::vector<double> values;
  for (const auto& [seed, value] : point.runs) values.push_back(value);
  const Spread spread = spread_of(values);
  PointSummary summary{.experiment = experiment.name,
                       .task = curve.task,
                       .line = curve.line,
                       .split = curve.split,
                       .x = point.x,
                       .runs = spread.count,
                       .minimum = spread.minimum,
                       .q10 = spread.median,
                       .median = spread.median,
                       .q90 = spread.median,
                       .maximum = spread.maximum};
  if (std::isnan(spread.median)) return summary;
  std::sort(values.begin(), values.end());
  summary.q10 = quantile(values, 0.1);
  summary.q90 = quantile(values, 0.9);
  return summary;
}

std::vector<PointSummary> summarise(const Experiment& experiment,
                                    const std::vector<Curve>& curves) {
  std::vector<PointSummary> summaries;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      summaries.push_back(summarise(experiment, curve, point));
    }
  }
  return summaries;
}

std::vector<MissingRuns> missing_runs(const Experiment& experiment, const FindResult& find) {
  std::vector<MissingRuns> places;
  std::map<std::tuple<std::string, std::string, std::optional<double>>, std::size_t> known;
  for (const ExperimentRun& run : runs_of(experiment)) {
    const auto [at, is_new] = known.try_emplace({run.task, run.line, run.x}, places.size());
    if (is_new) places.push_back({.task = run.task, .line = run.line, .x = run.x, .failure = {}});
    MissingRuns& place = places[at->second];
    ++place.runs;
    const std::optional<RunResult> result = find(run.key);
    if (result && result->status != RunStatus::failed) continue;
    ++place.missing;
    if (!result) continue;
    if (place.failed++ == 0) place.failure = result->message;
  }
  std::erase_if(places, [](const MissingRuns& place) { return place.missing == 0; });
  return places;
}

}  // namespace posattn

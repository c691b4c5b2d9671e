#include "posattn/experiments/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "posattn/base/error.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

constexpr std::array<std::pair<Split, std::string_view>, 3> split_names = {
    {{Split::train, "train"}, {Split::validation, "validation"}, {Split::test, "test"}}};

std::vector<Split> splits_of(const Experiment& experiment) {
  if (experiment.metric == Metric::accuracy) return {Split::test};
  return {Split::train, Split::validation, Split::test};
}

std::optional<double> test_value(const RunResult& result, double c, Metric metric) {
  const auto at = std::find_if(result.tests.begin(), result.tests.end(),
                               [c](const ScaleResult& test) { return test.c == c; });
  if (at == result.tests.end()) return std::nullopt;
  return metric == Metric::accuracy ? at->accuracy : at->mse;
}

// What a run gives for a point; nothing while it is not finished. c: of the test split.
std::optional<double> value_of(const std::optional<RunResult>& result, Split split, double c,
                               Metric metric) {
  if (!result || result->status == RunStatus::failed) return std::nullopt;
  if (result->status == RunStatus::diverged) return std::numeric_limits<double>::quiet_NaN();
  if (split == Split::train) return result->train_loss;
  if (split == Split::validation) return result->validation_loss;
  return test_value(*result, c, metric);
}

// What a run that diverged counts as: in an order it is the worst of all.
double worst_value(Metric metric) {
  return metric == Metric::accuracy ? 0 : std::numeric_limits<double>::infinity();
}

void add_run(CurvePoint& point, uint64_t seed, std::optional<double> value, Metric metric) {
  if (!value) {
    ++point.missing;
    return;
  }
  const bool diverged = std::isnan(*value);
  point.runs.emplace_back(seed, diverged ? worst_value(metric) : *value);
  if (diverged) ++point.diverged;
}

// The points of one curve by x; std::nullopt comes first.
using Points = std::map<std::optional<double>, CurvePoint>;

void add_run(Points& points, const Experiment& experiment, Split split, const ExperimentRun& run,
             const std::optional<RunResult>& result) {
  const ExperimentAxis& axis = experiment.axis;
  const auto add = [&](std::optional<double> x, double c) {
    CurvePoint& point = points[x];
    point.x = x;
    add_run(point, static_cast<uint64_t>(run.config.seed),
            value_of(result, split, c, experiment.metric), experiment.metric);
  };
  if (!axis.is_scale()) {
    add(run.x, axis.test_scale);
  } else if (split == Split::test) {
    for (const double c : axis.values) add(c, c);
  } else {
    add(std::nullopt, 1);
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

std::string_view to_string(Split split) {
  return std::find_if(split_names.begin(), split_names.end(),
                      [split](const auto& entry) { return entry.first == split; })
      ->second;
}

Split split_from(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [split, known_name] : split_names) {
    if (known_name == name) return split;
    known.emplace_back(known_name);
  }
  throw unknown_name(ExitCode::data, "split", name, known);
}

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
    for (const ExperimentLine& line : experiment.lines) {
      for (const Split split : splits) {
        Curve curve = finished_curve(task, line.name, split, found[{task, line.name}][split]);
        if (!curve.points.empty()) curves.push_back(std::move(curve));
      }
    }
  }
  return curves;
}

std::vector<Curve> curves_of(const Experiment& experiment, const ResultsDatabase& results) {
  return curves_of(experiment, [&](const std::string& key) { return results.find(key); });
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

}  // namespace posattn

#include "posattn/experiments/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

using CurveName = std::tuple<std::string, std::string, Split>;
using PointName = std::pair<CurveName, std::optional<double>>;

CurveName curve_of(const PointSummary& point) { return {point.task, point.line, point.split}; }
PointName name_of(const PointSummary& point) { return {curve_of(point), point.x}; }
std::string pair_of(const PointSummary& point) { return point.task + ", " + point.line; }

bool nine_in_ten(int64_t agreeing, int64_t points) { return 10 * agreeing >= 9 * points; }

double ratio_of(double a, double b) { return a == 0 && b == 0 ? 1 : a / b; }

ComparedPoint compare(const PointSummary& ours, const PublishedPoint& published) {
  const PointSummary& theirs = published.point;
  ComparedPoint point{.ours = ours, .theirs = theirs, .correction = published.correction};
  point.ratio = ratio_of(ours.median, theirs.median);
  const auto inside = [&](double low, double high) {
    return std::isfinite(ours.median) && ours.median >= low && ours.median <= high;
  };
  point.in_spread = inside(theirs.minimum / 2, 2 * theirs.maximum);
  point.within_factor = inside(theirs.median / 3, 3 * theirs.median);
  point.in_quantiles = inside(theirs.q10, theirs.q90);
  return point;
}

void add_verdict(ComparedCurve& curve) {
  double sum = 0;
  int64_t shown = 0;
  for (const ComparedPoint& point : curve.points) {
    curve.agreeing += point.agrees() ? 1 : 0;
    curve.within_factor += point.within_factor ? 1 : 0;
    curve.in_quantiles += point.in_quantiles ? 1 : 0;
    const double logarithm = std::log10(point.ratio);
    if (!std::isfinite(logarithm)) continue;
    sum += logarithm;
    ++shown;
  }
  curve.log10_ratio =
      shown > 0 ? sum / static_cast<double>(shown) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<PointSummary> summaries_of(const std::vector<PublishedPoint>& points) {
  std::vector<PointSummary> summaries;
  summaries.reserve(points.size());
  for (const PublishedPoint& point : points) summaries.push_back(point.point);
  return summaries;
}

// "task, line" of all points, once each in their order, but those in `compared`.
std::vector<std::string> not_compared(const std::vector<PointSummary>& points,
                                      const std::set<std::string>& compared) {
  std::vector<std::string> names;
  for (const PointSummary& point : points) {
    const std::string name = pair_of(point);
    if (!compared.contains(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

// Values of the seeds that both points have.
std::pair<std::vector<double>, std::vector<double>> common_runs(const CurvePoint& first,
                                                                const CurvePoint& second) {
  const std::map<uint64_t, double> others(second.runs.begin(), second.runs.end());
  std::pair<std::vector<double>, std::vector<double>> values;
  for (const auto& [seed, value] : first.runs) {
    const auto other = others.find(seed);
    if (other == others.end()) continue;
    values.first.push_back(value);
    values.second.push_back(other->second);
  }
  return values;
}

std::vector<PublishedPoint> read_embedded() {
  constexpr std::string_view name = "published.csv";
  for (const EmbeddedFile& file : embedded_experiments()) {
    if (file.name == name) return published_from_csv(file.text, std::string(name));
  }
  throw std::logic_error("published.csv is not part of the program");
}

}  // namespace

bool ComparedCurve::agrees() const {
  return nine_in_ten(agreeing, static_cast<int64_t>(points.size()));
}

bool Comparison::agrees() const { return nine_in_ten(agreeing, points); }

Comparison compare(const std::vector<PointSummary>& ours, const std::vector<PublishedPoint>& theirs,
                   const std::string& with) {
  std::map<PointName, const PublishedPoint*> others;
  for (const PublishedPoint& point : theirs) others[name_of(point.point)] = &point;
  Comparison comparison;
  comparison.with = with;
  std::map<CurveName, size_t> places;  // in comparison.curves
  std::set<std::string> compared;
  for (const PointSummary& point : ours) {
    const auto other = others.find(name_of(point));
    if (other == others.end()) continue;
    const auto [place, is_new] = places.try_emplace(curve_of(point), comparison.curves.size());
    if (is_new) {
      comparison.curves.push_back(
          {.task = point.task, .line = point.line, .split = point.split, .points = {}});
    }
    comparison.curves[place->second].points.push_back(compare(point, *other->second));
    compared.insert(pair_of(point));
  }
  for (ComparedCurve& curve : comparison.curves) {
    add_verdict(curve);
    if (curve.split != Split::test) continue;
    comparison.points += static_cast<int64_t>(curve.points.size());
    comparison.agreeing += curve.agreeing;
    comparison.within_factor += curve.within_factor;
    comparison.in_quantiles += curve.in_quantiles;
  }
  comparison.without_ours = std::ranges::count_if(theirs,
                                                  [](const PublishedPoint& published) {
                                                    return published.point.split == Split::test;
                                                  }) -
                            comparison.points;
  comparison.only_ours = not_compared(ours, compared);
  comparison.only_theirs = not_compared(summaries_of(theirs), compared);
  return comparison;
}

bool has_growth(const Experiment& experiment) {
  return experiment.axis.name() == "c" && experiment.metric->name == "mse";
}

Growth growth_in_scale(const std::vector<PointSummary>& points, const std::string& task,
                       const std::string& line) {
  std::vector<double> scales, medians;
  for (const PointSummary& point : points) {
    if (point.task != task || point.line != line || point.split != Split::test || !point.x)
      continue;
    // A point that a logarithm cannot show counts as missing.
    const bool shown = point.median > 0 && std::isfinite(point.median);
    if (!shown || *point.x < growth_first || *point.x > growth_last) continue;
    scales.push_back(*point.x);
    medians.push_back(point.median);
  }
  const auto has = [&](double end) {
    return std::find(scales.begin(), scales.end(), end) != scales.end();
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return has(growth_first) && has(growth_last) ? growth(scales, medians) : Growth{nan, nan};
}

Growth growth_in_scale(const std::vector<PublishedPoint>& points, const std::string& task,
                       const std::string& line) {
  return growth_in_scale(summaries_of(points), task, line);
}

std::vector<PairedPoint> paired_points(const std::vector<Curve>& curves, const std::string& first,
                                       const std::string& second) {
  std::vector<PairedPoint> paired;
  for (const Curve& curve : curves) {
    if (curve.line != first || curve.split != Split::test) continue;
    const Curve* other = test_curve(curves, curve.task, second);
    if (other == nullptr) continue;
    for (const CurvePoint& point : curve.points) {
      const auto match = std::find_if(other->points.begin(), other->points.end(),
                                      [&](const CurvePoint& at) { return at.x == point.x; });
      if (match == other->points.end()) continue;
      const auto [a, b] = common_runs(point, *match);
      if (static_cast<int64_t>(a.size()) < fewest_pairs) continue;
      SignedRank test = signed_rank_test(a, b);
      if (test.pairs < fewest_pairs) test.p_value = std::numeric_limits<double>::quiet_NaN();
      paired.push_back({.task = curve.task,
                        .first = first,
                        .second = second,
                        .x = point.x,
                        .median_ratio = ratio_of(spread_of(a).median, spread_of(b).median),
                        .test = test});
    }
  }
  return paired;
}

std::vector<PublishedPoint> published_from_csv(std::string_view csv, const std::string& name) {
  std::vector<PublishedPoint> points;
  for (PointRow& row : read_point_rows(csv, name, "correction")) {
    // The five are in order, or all NaN: the largest speaks for all.
    if (!std::isfinite(row.point.maximum)) {
      throw Error(ExitCode::data, fmt::format("{}:{}: max '{}'", name, row.line, row.point.maximum),
                  "a finite number");
    }
    points.push_back({std::move(row.point), std::move(row.text)});
  }
  return points;
}

const std::vector<PublishedPoint>& published_points() {
  static const std::vector<PublishedPoint> points = read_embedded();
  return points;
}

std::vector<PublishedPoint> published_points(const std::string& experiment) {
  std::vector<PublishedPoint> points;
  std::copy_if(published_points().begin(), published_points().end(), std::back_inserter(points),
               [&](const PublishedPoint& point) { return point.point.experiment == experiment; });
  return points;
}

// Published with the experiment on mixed-type inputs: GPT-2 large, fine-tuned from its weights.
static std::vector<PublishedPoint> published_gpt2(const Experiment& experiment) {
  constexpr std::string_view published_size = "gpt2-large";
  if (std::ranges::count(experiment.lines, published_size, &ExperimentLine::name) == 0) return {};
  std::vector<PublishedPoint> points = published_points("mixed-type");
  std::erase_if(points, [](const PublishedPoint& point) { return point.point.line != "gpt2"; });
  for (PublishedPoint& point : points) {
    point.point.experiment = experiment.name;
    point.point.task += "-gpt2";
    point.point.line = published_size;
  }
  return points;
}

std::vector<PublishedPoint> published_points(const Experiment& experiment) {
  if (!experiment.is_embedded) return {};
  if (experiment.metric->name == "answer_mse") return published_gpt2(experiment);
  if (experiment.metric->name != "mse") return {};
  std::vector<PublishedPoint> points = published_points(experiment.name);
  if (experiment.view_of.empty() || points.empty()) return points;
  // A view of the same runs with other tests: trained and validated they were once.
  for (PublishedPoint& point : published_points(experiment.view_of)) {
    if (point.point.split == Split::test) continue;
    point.point.experiment = experiment.name;
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace posattn

#include "posattn/experiments/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

using CurveName = std::tuple<std::string, std::string, Split>;
using PointName = std::pair<CurveName, std::optional<double>>;

CurveName curve_of(const PointSummary& point) { return {point.task, point.line, point.split}; }
PointName name_of(const PointSummary& point) { return {curve_of(point), point.x}; }
std::string pair_of(const PointSummary& point) { return point.task + ", " + point.line; }

bool nine_in_ten(int64_t agreeing, int64_t points) { return 10 * agreeing >= 9 * points; }

double ratio_of(double a, double b) { return a == b ? 1 : a / b; }

ComparedPoint compare(const PointSummary& ours, const PublishedPoint& published) {
  const PointSummary& theirs = published.point;
  ComparedPoint point{.ours = ours, .theirs = theirs, .correction = published.correction};
  point.ratio = ratio_of(ours.median, theirs.median);
  point.in_spread = ours.median >= theirs.minimum / 2 && ours.median <= 2 * theirs.maximum;
  point.within_factor = ours.median >= theirs.median / 3 && ours.median <= 3 * theirs.median;
  return point;
}

void add_verdict(ComparedCurve& curve) {
  double sum = 0;
  int64_t shown = 0;
  for (const ComparedPoint& point : curve.points) {
    curve.agreeing += point.agrees() ? 1 : 0;
    const double logarithm = std::log10(point.ratio);
    if (!std::isfinite(logarithm)) continue;
    sum += logarithm;
    ++shown;
  }
  curve.log10_ratio =
      shown > 0 ? sum / static_cast<double>(shown) : std::numeric_limits<double>::quiet_NaN();
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

const Curve* find_curve(const std::vector<Curve>& curves, const std::string& task,
                        const std::string& line) {
  const auto at = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) {
    return curve.task == task && curve.line == line && curve.split == Split::test;
  });
  return at == curves.end() ? nullptr : &*at;
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
  }
  std::vector<PointSummary> their_points;
  their_points.reserve(theirs.size());
  for (const PublishedPoint& point : theirs) their_points.push_back(point.point);
  comparison.only_ours = not_compared(ours, compared);
  comparison.only_theirs = not_compared(their_points, compared);
  return comparison;
}

bool grows_at(const PointSummary& point) { return point.x && *point.x >= 2 && *point.x <= 10; }

Growth growth_in_scale(const std::vector<PointSummary>& curve) {
  std::vector<double> scales, medians;
  for (const PointSummary& point : curve) {
    if (!grows_at(point)) continue;
    scales.push_back(*point.x);
    medians.push_back(point.median);
  }
  return growth(scales, medians);
}

std::vector<PairedPoint> paired_points(const std::vector<Curve>& curves, const std::string& first,
                                       const std::string& second) {
  constexpr size_t fewest_pairs = 5;
  std::vector<PairedPoint> paired;
  for (const Curve& curve : curves) {
    if (curve.line != first || curve.split != Split::test) continue;
    const Curve* other = find_curve(curves, curve.task, second);
    if (other == nullptr) continue;
    for (const CurvePoint& point : curve.points) {
      const auto match = std::find_if(other->points.begin(), other->points.end(),
                                      [&](const CurvePoint& at) { return at.x == point.x; });
      if (match == other->points.end()) continue;
      const auto [a, b] = common_runs(point, *match);
      if (a.size() < fewest_pairs) continue;
      paired.push_back({.task = curve.task,
                        .first = first,
                        .second = second,
                        .x = point.x,
                        .median_ratio = ratio_of(spread_of(a).median, spread_of(b).median),
                        .test = signed_rank_test(a, b)});
    }
  }
  return paired;
}

}  // namespace posattn

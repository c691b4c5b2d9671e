// Compares our results with others, the published ones or another results folder, and two lines of
// one experiment with each other.
#pragma once

#include "posattn/experiments/curves.h"
#include "posattn/experiments/statistics.h"

namespace posattn {

// A published point (experiments/published.csv, embedded): summarised from the result files that
// the paper's authors released. `correction` says what was changed where those are known to be
// wrong, or is empty.
struct PublishedPoint {
  PointSummary point;
  std::string correction;
};
const std::vector<PublishedPoint>& published_points();
std::vector<PublishedPoint> published_points(const std::string& experiment);
// The points to compare its results with. Losses of the paper's experiments are what was published:
// none for another metric or for an experiment of the user's own.
std::vector<PublishedPoint> published_points(const Experiment& experiment);

// The columns of to_csv and `correction`; all numbers finite. Throws Error(data) that starts with
// "name:line".
std::vector<PublishedPoint> published_from_csv(std::string_view csv, const std::string& name);

struct ComparedPoint {
  PointSummary ours, theirs;
  std::string correction;
  double ratio = 0;            // ours / theirs, of medians; 1 where both are 0
  bool in_spread = false;      // ours is inside [min / 2, 2 max] of theirs
  bool within_factor = false;  // or within a factor of 3 of their median
  bool in_quantiles = false;   // stricter where they spread widely: ours is inside their [q10, q90]
  bool agrees() const { return in_spread || within_factor; }
};

struct ComparedCurve {
  std::string task, line;
  Split split = Split::test;
  std::vector<ComparedPoint> points;
  int64_t agreeing = 0, within_factor = 0, in_quantiles = 0;  // points
  // Mean over points of log10(ours / theirs), of those that a logarithm can show; NaN for none.
  double log10_ratio = 0;
  bool agrees() const;  // at least 90 % of the points
};

struct Comparison {
  std::string with;                                 // "the published results", or a folder
  std::vector<ComparedCurve> curves;                // those with a point, in our order
  int64_t points = 0, agreeing = 0;                 // test split, like the next
  int64_t within_factor = 0, in_quantiles = 0;      // points
  int64_t without_ours = 0;                         // of theirs, where we have no run
  std::vector<std::string> only_ours, only_theirs;  // "task, line": nothing to compare with
  // At least 90 % of the test points; also where there are none (`points` tells).
  bool agrees() const;
};

// Joins points by task, line, split and x; theirs must all be of one experiment.
Comparison compare(const std::vector<PointSummary>& ours, const std::vector<PublishedPoint>& theirs,
                   const std::string& with);

// Whether curves of the experiment have an exponent: those of the squared error over scales c.
bool has_growth(const Experiment& experiment);

// How the medians of a test curve grow with its scale c between growth_first and growth_last, over
// all of its points there, whatever another curve has. NaN where it has no median at either end:
// exponents of different ranges do not compare. `points` may be of several curves.
constexpr double growth_first = 2, growth_last = 10;
Growth growth_in_scale(const std::vector<PointSummary>& points, const std::string& task,
                       const std::string& line);
Growth growth_in_scale(const std::vector<PublishedPoint>& points, const std::string& task,
                       const std::string& line);

// Two lines of one task at one x of the test split, run by run: those of one seed have the same
// data. Only where so many seeds are finished in both: of fewer pairs no p-value is below 0.05.
// Where fewer of them differ the p-value is NaN.
constexpr int64_t fewest_pairs = 6;
struct PairedPoint {
  std::string task, first, second;
  std::optional<double> x;
  double median_ratio = 0;  // median of the first / median of the second
  SignedRank test;
};
std::vector<PairedPoint> paired_points(const std::vector<Curve>& curves, const std::string& first,
                                       const std::string& second);

}  // namespace posattn

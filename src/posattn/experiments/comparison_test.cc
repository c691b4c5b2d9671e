#include "posattn/experiments/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/limits.h"

namespace posattn {
namespace {

using testing::ElementsAre;

PointSummary point(const std::string& task, const std::string& line, Split split,
                   std::optional<double> x, double median, double spread = 1) {
  return {.experiment = "value-range",
          .task = task,
          .line = line,
          .split = split,
          .x = x,
          .runs = 10,
          .minimum = median / spread,
          .q10 = median / spread,
          .median = median,
          .q90 = median * spread,
          .maximum = median * spread};
}

PublishedPoint published(const PointSummary& summary, const std::string& correction = "") {
  return {summary, correction};
}

// Compares one test point of ours with one of theirs.
ComparedPoint compare_one(double ours, double theirs, double their_spread = 1) {
  const Comparison comparison =
      compare({point("sort", "standard", Split::test, 2, ours)},
              {published(point("sort", "standard", Split::test, 2, theirs, their_spread))}, "x");
  return comparison.curves.at(0).points.at(0);
}

TEST(ComparisonOfPoints, AgreesInTheSpreadOrWithinAFactor) {
  // Without a spread: [1/2, 2] is the spread's share, [1/3, 3] the factor's.
  EXPECT_TRUE(compare_one(2, 1).in_spread);
  EXPECT_FALSE(compare_one(2.01, 1).in_spread);
  EXPECT_TRUE(compare_one(2.99, 1).within_factor);
  EXPECT_TRUE(compare_one(2.99, 1).agrees());
  EXPECT_FALSE(compare_one(3.01, 1).agrees());
  EXPECT_TRUE(compare_one(0.34, 1).agrees());
  EXPECT_FALSE(compare_one(0.33, 1).agrees());
  // A spread of 10 either way reaches to 20.
  EXPECT_TRUE(compare_one(19.9, 1, 10).agrees());
  EXPECT_FALSE(compare_one(19.9, 1, 10).within_factor);
  EXPECT_FALSE(compare_one(20.1, 1, 10).agrees());
  EXPECT_TRUE(compare_one(0.051, 1, 10).agrees());
  EXPECT_FALSE(compare_one(0.049, 1, 10).agrees());
  EXPECT_DOUBLE_EQ(compare_one(3, 2).ratio, 1.5);
}

TEST(ComparisonOfPoints, DivergedNeverAgreesAndZeroEqualsZero) {
  EXPECT_FALSE(compare_one(std::nan(""), 1, 100).agrees());
  EXPECT_FALSE(compare_one(infinity, 1, 100).agrees());
  const ComparedPoint both = compare_one(infinity, infinity);
  EXPECT_FALSE(both.agrees());
  EXPECT_FALSE(both.in_quantiles);
  EXPECT_TRUE(std::isnan(both.ratio));
  EXPECT_TRUE(compare_one(0, 0).agrees());
  EXPECT_EQ(compare_one(0, 0).ratio, 1);
}

// Their runs reach from 1/100 to 100 around a median of 1, eight of ten of them from 1/2 to 5.
TEST(ComparisonOfCurves, CountsWhatIsCloserThanTheRuleAsks) {
  PointSummary wide = point("sort", "standard", Split::test, 1, 1, 100);
  wide.q10 = 0.5;
  wide.q90 = 5;
  std::vector<PointSummary> ours;
  std::vector<PublishedPoint> theirs;
  for (const double median : {0.02, 0.4, 2.0, 4.0, 150.0, 1000.0}) {
    const auto x = static_cast<double>(ours.size());
    ours.push_back(point("sort", "standard", Split::test, x, median));
    wide.x = x;
    theirs.push_back(published(wide));
  }
  ours.push_back(point("sort", "standard", Split::train, {}, 1));
  theirs.push_back(published(point("sort", "standard", Split::train, {}, 1)));
  const Comparison comparison = compare(ours, theirs, "x");
  EXPECT_EQ(comparison.points, 6);
  EXPECT_EQ(comparison.agreeing, 5);
  EXPECT_EQ(comparison.within_factor, 2);  // 0.4 and 2
  EXPECT_EQ(comparison.in_quantiles, 2);   // 2 and 4
  EXPECT_EQ(comparison.curves[0].in_quantiles, 2);
  EXPECT_FALSE(comparison.curves[0].points[1].in_quantiles);
  EXPECT_TRUE(comparison.curves[0].points[3].in_quantiles);
  EXPECT_EQ(comparison.curves[1].within_factor, 1);  // train: not in the sums
}

TEST(ComparisonOfCurves, JoinsTaskLineSplitAndX) {
  const std::vector<PointSummary> ours = {
      point("sort", "positional", Split::train, {}, 1),
      point("sort", "positional", Split::test, 1, 1),
      point("sort", "positional", Split::test, 2, 10),
      point("sort", "positional", Split::test, 4, 5),  // they have no such x
      point("sort", "standard", Split::test, 1, 100),
      point("path", "standard", Split::test, 1, 7)};  // nor such a task
  const std::vector<PublishedPoint> theirs = {
      published(point("sort", "positional", Split::test, 2, 1), "halved"),
      published(point("sort", "positional", Split::test, 1, 1)),
      published(point("sort", "standard", Split::test, 1, 10)),
      published(point("sort", "standard", Split::validation, {}, 10)),
      published(point("sort", "positional", Split::train, {}, 1000)),
      published(point("cumulative-sum", "standard", Split::test, 1, 10)),
      published(point("cumulative-sum", "standard", Split::test, 2, 10))};
  const Comparison comparison = compare(ours, theirs, "their folder");
  EXPECT_EQ(comparison.with, "their folder");
  ASSERT_EQ(comparison.curves.size(), 3u);
  EXPECT_EQ(comparison.curves[0].split, Split::train);
  const ComparedCurve& positional = comparison.curves[1];
  EXPECT_EQ(positional.line, "positional");
  ASSERT_EQ(positional.points.size(), 2u);
  EXPECT_EQ(positional.points[1].correction, "halved");
  EXPECT_EQ(positional.agreeing, 1);
  EXPECT_FALSE(positional.agrees());
  EXPECT_DOUBLE_EQ(positional.log10_ratio, 0.5);  // of 0 and 1
  EXPECT_EQ(comparison.points, 3);                // the train loss does not count
  EXPECT_EQ(comparison.agreeing, 1);
  EXPECT_FALSE(comparison.agrees());
  EXPECT_THAT(comparison.only_ours, ElementsAre("path, standard"));
  EXPECT_THAT(comparison.only_theirs, ElementsAre("cumulative-sum, standard"));
}

TEST(ComparisonOfCurves, NineInTenAreEnough) {
  for (const int wrong : {0, 1, 2}) {
    std::vector<PointSummary> ours;
    std::vector<PublishedPoint> theirs;
    for (int c = 1; c <= 10; ++c) {
      ours.push_back(point("sort", "standard", Split::test, c, c <= wrong ? 1000 : 1));
      theirs.push_back(published(point("sort", "standard", Split::test, c, 1)));
    }
    const Comparison comparison = compare(ours, theirs, "x");
    EXPECT_EQ(comparison.agreeing, 10 - wrong);
    EXPECT_EQ(comparison.agrees(), wrong <= 1);
    EXPECT_EQ(comparison.curves[0].agrees(), wrong <= 1);
  }
}

TEST(ComparisonOfCurves, LogarithmsLeaveOutWhatTheyCannotShow) {
  const Comparison some = compare({point("sort", "standard", Split::test, 1, 100),
                                   point("sort", "standard", Split::test, 2, std::nan("")),
                                   point("sort", "standard", Split::test, 3, 0)},
                                  {published(point("sort", "standard", Split::test, 1, 1)),
                                   published(point("sort", "standard", Split::test, 2, 1)),
                                   published(point("sort", "standard", Split::test, 3, 1))},
                                  "x");
  EXPECT_DOUBLE_EQ(some.curves[0].log10_ratio, 2);
  const Comparison nothing =
      compare({point("sort", "standard", Split::test, 1, 0)},
              {published(point("sort", "standard", Split::test, 1, 1))}, "x");
  EXPECT_TRUE(std::isnan(nothing.curves[0].log10_ratio));
}

TEST(ComparisonOfCurves, NothingInCommonHasNothingAgainstIt) {
  const Comparison comparison = compare({point("sort", "standard", Split::test, 1, 1)}, {}, "x");
  EXPECT_EQ(comparison.points, 0);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_THAT(comparison.only_ours, ElementsAre("sort, standard"));
}

// 4 c^3 at these scales.
std::vector<PointSummary> cubic(const std::vector<double>& scales) {
  std::vector<PointSummary> curve;
  curve.reserve(scales.size());
  for (const double c : scales) {
    curve.push_back(point("sort", "standard", Split::test, c, 4 * c * c * c));
  }
  return curve;
}

double exponent(const std::vector<PointSummary>& points) {
  return growth_in_scale(points, "sort", "standard").exponent;
}

TEST(ScaleGrowth, OfOneTestCurveBetweenTwoAndTen) {
  std::vector<PointSummary> points = cubic({2, 3, 5, 10});
  points.insert(points.end(), {point("sort", "standard", Split::train, {}, 9),
                               point("sort", "standard", Split::validation, 2, 9),
                               point("sort", "positional", Split::test, 4, 9),
                               point("path", "standard", Split::test, 4, 9),
                               point("sort", "standard", Split::test, 1, 1000),
                               point("sort", "standard", Split::test, 1000, 1)});
  EXPECT_NEAR(exponent(points), 3, 1e-12);
  std::vector<PublishedPoint> theirs;
  theirs.reserve(points.size());
  for (const PointSummary& summary : points) theirs.push_back(published(summary));
  EXPECT_EQ(growth_in_scale(theirs, "sort", "standard").exponent, exponent(points));
}

TEST(ScaleGrowth, NeedsBothEnds) {
  EXPECT_NEAR(exponent(cubic({2, 10})), 3, 1e-12);
  EXPECT_TRUE(std::isnan(exponent(cubic({2, 3, 5, 9}))));
  EXPECT_TRUE(std::isnan(exponent(cubic({1, 3, 5, 10}))));
  std::vector<PointSummary> points = cubic({2, 3, 5, 10});
  points[1].median = std::nan("");
  EXPECT_NEAR(exponent(points), 3, 1e-12);
  points[3].median = std::nan("");  // diverged
  EXPECT_TRUE(std::isnan(exponent(points)));
}

TEST(ScaleGrowth, IsOfLossesOverScales) {
  Experiment experiment;
  experiment.axis.key = "test-scales";
  EXPECT_TRUE(has_growth(experiment));
  experiment.metric = &find_metric("accuracy");
  EXPECT_FALSE(has_growth(experiment));
  experiment.metric = &find_metric("mse");
  experiment.axis.key = "samples";
  EXPECT_FALSE(has_growth(experiment));
}

Curve curve_of(const std::string& line, const std::vector<std::pair<uint64_t, double>>& runs,
               Split split = Split::test) {
  return {.task = "sort", .line = line, .split = split, .points = {{.x = 2, .runs = runs}}};
}

TEST(PairedLines, AreTestedOverCommonSeeds) {
  const std::vector<Curve> curves = {
      curve_of("positional", {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {7, 1}}),
      curve_of("standard", {{0, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}, {5, infinity}, {9, 0}}),
      curve_of("third", {{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}})};
  const std::vector<PairedPoint> paired = paired_points(curves, "positional", "standard");
  ASSERT_EQ(paired.size(), 1u);
  EXPECT_EQ(paired[0].task, "sort");
  EXPECT_EQ(paired[0].x, 2);
  EXPECT_EQ(paired[0].test.pairs, 6);           // with the one that diverged
  EXPECT_EQ(paired[0].test.p_value, 2.0 / 64);  // all six of one sign
  EXPECT_EQ(paired[0].median_ratio, 0.25);
  EXPECT_TRUE(paired_points(curves, "positional", "third").empty());  // five seeds in common
  EXPECT_TRUE(paired_points(curves, "positional", "fourth").empty());
}

TEST(PairedLines, EqualRunsTellNothing) {
  const std::vector<std::pair<uint64_t, double>> runs = {{0, 1}, {1, 1}, {2, 1},
                                                         {3, 1}, {4, 1}, {5, 1}};
  auto others = runs;
  for (size_t different = 0; different <= runs.size(); ++different) {
    const auto paired = paired_points({curve_of("a", runs), curve_of("b", others)}, "a", "b");
    ASSERT_EQ(paired.size(), 1u);
    EXPECT_EQ(paired[0].test.pairs, static_cast<int64_t>(different));
    EXPECT_EQ(std::isnan(paired[0].test.p_value), different < runs.size());
    if (different < runs.size()) others[different].second = 2;
  }
}

TEST(PairedLines, AreTestLossesAlone) {
  const std::vector<std::pair<uint64_t, double>> runs = {{0, 1}, {1, 1}, {2, 1},
                                                         {3, 1}, {4, 1}, {5, 1}};
  EXPECT_TRUE(paired_points({curve_of("a", runs, Split::train), curve_of("b", runs, Split::train)},
                            "a", "b")
                  .empty());
}

}  // namespace
}  // namespace posattn

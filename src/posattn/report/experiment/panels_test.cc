#include "posattn/report/experiment/panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posattn/report/experiment/sample_experiment_test.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ExperimentPanels, OnePerTaskWithEveryLineAndValue) {
  const Experiment experiment = sample_experiment();
  const auto panels =
      panels_of(experiment, sample_curves(experiment), sample_published(experiment, 2));
  ASSERT_EQ(panels.size(), 2u);
  EXPECT_EQ(panels[1].task, "cumulative-min");
  ASSERT_EQ(panels[1].lines.size(), 2u);
  const BandPoint& last = panels[1].lines[0].ours.back();
  EXPECT_DOUBLE_EQ(last.x, 10);
  EXPECT_DOUBLE_EQ(last.low, 0.1);
  EXPECT_DOUBLE_EQ(last.median, 0.2);
  EXPECT_DOUBLE_EQ(last.high, 0.3);
  ASSERT_EQ(panels[1].lines[0].published.size(), 4u);  // of the test split alone
  EXPECT_DOUBLE_EQ(panels[1].lines[0].published.back().median, 0.4);
}

TEST(ExperimentPanels, PointsOfOneRunAreNotJoinedWhereEachIsOfAnother) {
  Experiment experiment = sample_experiment();
  experiment.axis = {.key = "length", .values = {2, 4, 8, 16}, .label = "n", .test_x = 3};
  std::vector<Curve> curves = sample_curves(experiment);
  const auto test = std::ranges::find(curves, Split::test, &Curve::split);
  test->points[1].runs.resize(1);
  const std::vector<BandPoint> points = panels_of(experiment, curves, {})[0].lines[0].ours;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_FALSE(points[0].alone);
  EXPECT_TRUE(points[1].alone);
  EXPECT_FALSE(joined(points, 1, find_metric("mse")));
  EXPECT_FALSE(joined(points, 2, find_metric("mse")));
  EXPECT_TRUE(joined(points, 3, find_metric("mse")));
  EXPECT_FALSE(joined(points, 4, find_metric("mse")));
  EXPECT_TRUE(any_joined(points, find_metric("mse")));
  EXPECT_FALSE(any_joined({points[0], points[1], points[2]}, find_metric("mse")));

  // Along c the points of one run are one network's.
  experiment = sample_experiment();
  curves = sample_curves(experiment);
  for (Curve& curve : curves) {
    for (CurvePoint& point : curve.points) point.runs.resize(1);
  }
  EXPECT_FALSE(panels_of(experiment, curves, {})[0].lines[0].ours[1].alone);
}

TEST(ExperimentPanels, ABaselineWithoutErrorIsNamedBelowTheFigure) {
  Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  experiment.lines.push_back({.name = "oracle", .settings = {}, .is_baseline = true});
  Curve oracle{.task = "cumulative-sum", .line = "oracle", .points = {}};
  oracle.points.push_back({.x = 1, .runs = {{0, 0.0}, {1, 0.0}, {2, 0.0}}});
  curves.push_back(oracle);
  const std::string words = "oracle: no error at all, which this axis cannot show.";
  EXPECT_THAT(figure_note(experiment, curves, {}), HasSubstr(words));
  curves.back().points[0].runs[1].second = 1e-3;
  EXPECT_THAT(figure_note(experiment, curves, {}), Not(HasSubstr(words)));
}

TEST(ExperimentPanels, SeesWhatTheAxisClips) {
  const AxisRange range{1, 100};
  EXPECT_FALSE(is_clipped_below({0, 10, 1, 100}, find_metric("mse"), range));
  EXPECT_FALSE(is_clipped_above({0, 10, 1, 100}, find_metric("mse"), range));
  EXPECT_TRUE(is_clipped_below({0, 10, 0, 100}, find_metric("mse"), range));
  EXPECT_TRUE(is_clipped_above({0, 10, 1, INFINITY}, find_metric("mse"), range));
  EXPECT_FALSE(is_clipped_above({0, NAN, 1, INFINITY}, find_metric("mse"), range));
  EXPECT_FALSE(is_clipped_below({0, 0.5, 0, 1}, find_metric("accuracy"), {0, 1}));
  Panel panel{"task", {{{{1, 10, 5, 20}}, {}}}};
  EXPECT_FALSE(has_clipped_point(panel, find_metric("mse")));
  panel.lines[0].published = {{1, 10, 1e-6, 20}};
  EXPECT_TRUE(has_clipped_point(panel, find_metric("mse")));
}

TEST(ExperimentPanels, WhatIsMissingIsNotANumber) {
  const Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  for (Curve& curve : curves) {
    if (curve.task == "cumulative-sum" && curve.line == "positional" &&
        curve.split == Split::test) {
      curve.points.erase(curve.points.begin() + 1);
    }
  }
  const auto points = panels_of(experiment, curves, {})[0].lines[0].ours;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_TRUE(std::isnan(points[1].median));
  EXPECT_DOUBLE_EQ(points[1].x, 2);
  EXPECT_FALSE(std::isnan(points[2].median));
}

TEST(ExperimentPanels, LeavesOutPublishedPointsBeyondTheAxis) {
  const Experiment experiment = sample_experiment();
  auto published = sample_published(experiment, 2);
  for (PublishedPoint& point : published) point.point.x = 11;
  EXPECT_TRUE(panels_of(experiment, {}, published)[0].lines[0].published.empty());
  EXPECT_EQ(figure_note(experiment, {}, published), "No finished run.");
}

TEST(ExperimentPanels, RangeIsWholeDecadesAndIgnoresOneWildRun) {
  Panel panel{"t", {{{{1, 0.02, 0.015, 1e30}}, {}}}};
  auto range = value_range(panel, find_metric("mse"));
  ASSERT_TRUE(range);
  EXPECT_DOUBLE_EQ(range->low, 0.01);
  EXPECT_NEAR(range->high, 10, 1e-9);
  panel.lines[0].ours[0].high = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(value_range(panel, find_metric("mse"))->high, 10, 1e-9);
  EXPECT_DOUBLE_EQ(value_range(panel, find_metric("accuracy"))->high, 1);
  panel.lines[0].ours[0].median = NAN;
  EXPECT_FALSE(value_range(panel, find_metric("mse")));
  panel.lines[0].ours[0].median = 0;
  EXPECT_FALSE(value_range(panel, find_metric("mse")));
  EXPECT_TRUE(value_range(panel, find_metric("accuracy")));
}

TEST(ExperimentPanels, NoteCountsRuns) {
  const Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  EXPECT_THAT(figure_note(experiment, curves, {}), HasSubstr("3 runs a point: median"));
  EXPECT_THAT(figure_note(experiment, curves, {}), Not(HasSubstr("published")));
  EXPECT_THAT(figure_note(experiment, curves, sample_published(experiment, 1)),
              HasSubstr("published results (10 runs)"));
  for (Curve& curve : curves) {
    if (curve.line == "standard") {
      for (CurvePoint& point : curve.points) point.runs.resize(2);
    }
  }
  EXPECT_THAT(figure_note(experiment, curves, {}), HasSubstr("2 to 3 of 3 runs a point"));
  for (Curve& curve : curves) {
    for (CurvePoint& point : curve.points) point.runs.resize(1);
  }
  EXPECT_THAT(figure_note(experiment, curves, {}), HasSubstr("1 of 3 runs a point."));
}

TEST(ExperimentPanels, TheHueIsTheArchitectureAndTheShadeTheDepth) {
  Experiment experiment;
  experiment.settings.architecture = "standard";
  experiment.lines = {{"deep", {{"depth", "8"}}},
                      {"mine", {{"architecture", "positional"}}},
                      {"flat", {{"depth", "1"}}},
                      {.name = "compiled", .settings = {}, .is_baseline = true},
                      {.name = "oracle", .settings = {}, .is_baseline = true}};
  EXPECT_THAT(line_styles(experiment), ElementsAre(style_of("standard"), style_of("positional"),
                                                   style_of("standard", Shade::pale),
                                                   style_of("compiled"), style_of("baseline")));
}

TEST(ExperimentPanels, NoteTellsOfDivergence) {
  const Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  for (Curve& curve : curves) {
    if (curve.split == Split::test) {
      curve.points[0].diverged = 1;
      break;
    }
  }
  EXPECT_THAT(figure_note(experiment, curves, {}), HasSubstr("Runs diverged at 1 point."));
}

}  // namespace
}  // namespace posattn

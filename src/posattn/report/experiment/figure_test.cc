#include "posattn/report/experiment/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/report/experiment/sample_experiment_test.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string draw(const Experiment& experiment, const std::vector<Curve>& curves,
                 const std::vector<PublishedPoint>& published = {}) {
  return draw_experiment(experiment, curves, published, FigureFormat::svg, "a");
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Pieces of lines in the colour of the first curve, those of the legend among them.
size_t line_segments(std::string_view svg) {
  size_t lines = 0;
  for (size_t at = svg.find("<path"); at != std::string_view::npos;
       at = svg.find("<path", at + 1)) {
    const std::string_view path = svg.substr(at, svg.find("/>", at) - at);
    if (path.find("stroke='#0072b2'") != std::string_view::npos) lines += count(path, " L");
  }
  return lines;
}

TEST(ExperimentFigure, ShowsTasksLinesAndNote) {
  const Experiment experiment = sample_experiment();
  const std::string svg = draw(experiment, sample_curves(experiment));
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_EQ(markup_problem(svg), "");
  for (const char* text : {"Loss by range", "cumulative-sum", "cumulative-min", "positional",
                           "standard", "3 runs a point", "mean squared error"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("published")));
  EXPECT_THAT(svg, Not(HasSubstr("No finished run")));
}

TEST(ExperimentFigure, NamesReductionAndPublishedResults) {
  Experiment experiment = sample_experiment();
  experiment.reduction = "quick: 20 epochs, 2 runs";
  const std::string svg =
      draw(experiment, sample_curves(experiment), sample_published(experiment, 2));
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("quick: 20 epochs, 2 runs"));
  EXPECT_THAT(svg, HasSubstr(">published<"));
}

TEST(ExperimentFigure, OddNamesAreShownAsTheyAre) {
  for (const std::string odd : {"'first", "two '' of them", "\\ 100% %s `date` $HOME",
                                "a_b^c{d} @e #f; g, [h]", "\u00e4 \u2264 \u6570"}) {
    Experiment experiment = sample_experiment();
    experiment.lines[0].name = experiment.title = experiment.axis.label = odd;
    const std::string svg = draw(experiment, sample_curves(experiment));
    EXPECT_EQ(markup_problem(svg), "") << odd;
    EXPECT_GE(count(svg, ">" + odd + "<"), 3u) << odd;  // title, axis and legend
  }
}

TEST(ExperimentFigure, LegendNamesWhatIsDrawn) {
  const Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  std::erase_if(curves, [](const Curve& curve) { return curve.line == "standard"; });
  std::vector<PublishedPoint> published = sample_published(experiment, 2);
  std::erase_if(published, [](const PublishedPoint& point) {
    return point.point.line != "standard" || point.point.task != "cumulative-min";
  });
  EXPECT_THAT(draw(experiment, curves, published), HasSubstr(">standard<"));
  const std::string svg = draw(experiment, curves);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr(">positional<"));
  EXPECT_THAT(svg, Not(HasSubstr("standard")));
}

TEST(ExperimentFigure, PngIsAboutAThousandSixHundredWide) {
  const Experiment experiment = sample_experiment();
  const std::string png =
      draw_experiment(experiment, sample_curves(experiment), {}, FigureFormat::png);
  ASSERT_GT(png.size(), 1000u);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(png[at]); };
  EXPECT_EQ(byte(18) * 256 + byte(19), 1600);
}

// A curve is one path; where a point is missing it is two.
TEST(ExperimentFigure, MissingPointsLeaveGaps) {
  Experiment experiment = sample_experiment();
  experiment.tasks.resize(1);
  experiment.lines.resize(1);
  experiment.axis.values = {1, 2, 3, 4, 5};
  std::vector<Curve> curves = sample_curves(experiment);
  const auto segments = [&] { return line_segments(draw(experiment, curves)); };
  const size_t whole = segments();
  std::vector<CurvePoint>& points = curves.back().points;
  ASSERT_EQ(curves.back().split, Split::test);
  points[2].runs[2].second = INFINITY;  // diverged: the band reaches the top
  EXPECT_EQ(segments(), whole);
  points[2].runs[1].second = INFINITY;  // the median too
  const size_t diverged = segments();
  EXPECT_LT(diverged, whole);
  points.erase(points.begin() + 2);
  EXPECT_EQ(segments(), diverged);
}

TEST(ExperimentFigure, MarksWhatTheAxisClips) {
  Experiment experiment = sample_experiment();
  experiment.tasks.resize(1);
  experiment.lines.resize(1);
  std::vector<Curve> curves = sample_curves(experiment);
  const auto triangles = [&](const std::string& svg) {
    return count(svg, "href='#a_gpPt8'") + count(svg, "href='#a_gpPt10'");
  };
  std::string svg = draw(experiment, curves);
  EXPECT_EQ(triangles(svg), 0u);
  EXPECT_THAT(svg, Not(HasSubstr("triangle")));
  ASSERT_EQ(curves.back().split, Split::test);
  curves.back().points[0].runs[0].second = 1e-12;
  curves.back().points[2].runs[2].second = INFINITY;
  svg = draw(experiment, curves);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(triangles(svg), 2u);
  EXPECT_THAT(svg, HasSubstr("A triangle at the edge"));
}

TEST(ExperimentFigure, PointsOfOneRunHaveNoLine) {
  Experiment experiment = sample_experiment();
  experiment.tasks.resize(1);
  experiment.lines.resize(1);
  experiment.axis = {.key = "length", .values = {2, 4, 8, 16}, .label = "n", .test_x = 3};
  std::vector<Curve> curves = sample_curves(experiment);
  EXPECT_GT(line_segments(draw(experiment, curves)), 0u);
  for (Curve& curve : curves) {
    for (CurvePoint& point : curve.points) point.runs.resize(1);
  }
  const std::string svg = draw(experiment, curves);
  EXPECT_EQ(line_segments(svg), 0u);
  EXPECT_THAT(svg, HasSubstr("color='#0072b2'"));  // the markers
}

TEST(ExperimentFigure, NarrowHasOnePanelAboveTheOther) {
  const Experiment experiment = sample_experiment();
  const std::string svg =
      draw_experiment(experiment, sample_curves(experiment), {}, FigureFormat::narrow_svg, "a");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("width=\"320\""));
  EXPECT_THAT(svg, HasSubstr("font-size=\"14.40\""));
  EXPECT_EQ(markup_problem("<div>" + svg + draw(experiment, sample_curves(experiment)) + "</div>"),
            "");
}

TEST(ExperimentFigure, SaysWhatItShows) {
  const Experiment experiment = sample_experiment();
  const std::string svg = draw(experiment, sample_curves(experiment));
  EXPECT_THAT(svg, HasSubstr("<title id=\"a_title\">Loss by range</title>"));
  EXPECT_THAT(svg,
              HasSubstr("mean squared error against c. Panels: cumulative-sum, cumulative-min. "
                        "Lines: positional, standard. 3 runs a point"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
}

TEST(ExperimentFigure, TextFromOutsideIsOnlyText) {
  const std::string hostile = "a_b^{c} <i> & it's `id` $HOME \xff\n\"; quit #";
  Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  for (Curve& curve : curves) {
    if (curve.line == "standard") curve.line = hostile;
    if (curve.task == "cumulative-min") curve.task = hostile;
  }
  experiment.lines[1].name = experiment.tasks[1] = hostile;
  experiment.title = experiment.reduction = experiment.axis.label = hostile;
  const std::string svg = draw(experiment, curves);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, HasSubstr("a_b^{c} &lt;i> &amp; it's `id` $HOME \xef\xbf\xbd"));
  EXPECT_GE(count(svg, "a_b^{c}"), 5u);
  EXPECT_FALSE(draw_experiment(experiment, curves, {}, FigureFormat::png).empty());
}

TEST(ExperimentFigure, TwoFitOnOnePage) {
  const Experiment experiment = sample_experiment();
  const std::vector<Curve> curves = sample_curves(experiment);
  EXPECT_EQ(
      markup_problem("<div>" + draw(experiment, curves) +
                     draw_experiment(experiment, curves, {}, FigureFormat::svg, "b") + "</div>"),
      "");
}

TEST(ExperimentFigure, NamesTasksWithoutResults) {
  const Experiment experiment = sample_experiment();
  std::vector<Curve> curves = sample_curves(experiment);
  std::erase_if(curves, [](const Curve& curve) { return curve.task == "cumulative-min"; });
  // With published results, but none of ours, there is no panel either.
  for (const auto& published : {std::vector<PublishedPoint>(), sample_published(experiment, 2)}) {
    const std::string svg = draw(experiment, curves, published);
    EXPECT_EQ(markup_problem(svg), "");
    EXPECT_THAT(svg, HasSubstr("cumulative-min.<"));  // the end of the note
    EXPECT_EQ(count(svg, "cumulative-min"), 2u);      // here and in the description
  }
}

TEST(ExperimentFigure, NothingToDraw) {
  const Experiment experiment = sample_experiment();
  EXPECT_EQ(draw(experiment, {}), "");
  EXPECT_EQ(draw(experiment, {}, sample_published(experiment, 1)), "");
  std::vector<Curve> curves = sample_curves(experiment);
  for (Curve& curve : curves) {
    for (CurvePoint& point : curve.points) {
      for (auto& [seed, value] : point.runs) value = INFINITY;
    }
  }
  EXPECT_EQ(draw(experiment, curves), "");
}

TEST(ExperimentFigure, OtherAxesAndAccuracy) {
  Experiment experiment = sample_experiment();
  experiment.metric = &find_metric("accuracy");
  const std::string accuracy = draw(experiment, sample_curves(experiment));
  EXPECT_EQ(markup_problem(accuracy), "");
  EXPECT_THAT(accuracy, HasSubstr("accuracy"));
  EXPECT_THAT(accuracy, HasSubstr("0.25"));

  experiment.metric = &find_metric("mse");
  experiment.axis = {.key = "length", .values = {2, 4, 8, 16}, .label = "n", .test_x = 3};
  EXPECT_EQ(markup_problem(draw(experiment, sample_curves(experiment))), "");
  experiment.axis.values = {4};
  EXPECT_EQ(markup_problem(draw(experiment, sample_curves(experiment))), "");
}

}  // namespace
}  // namespace posattn

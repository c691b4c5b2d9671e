#include "posattn/report/plot/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posattn/report/plot/line_style.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

FigureRequest two_lines() {
  FigureRequest request{.name = "ood",
                        .title = "Errors & scales",
                        .x_label = "c",
                        .y_label = "MSE",
                        .markers = true,
                        .lines = {}};
  FigureLine positional{.label = "positional", .style = style_of("positional"), .points = {}};
  FigureLine standard{.label = "standard", .style = style_of("standard"), .points = {}};
  for (int c = 1; c <= 10; ++c) {
    positional.points.push_back({double(c), 1e-4 * c, 5e-5 * c, 2e-4 * c});
    standard.points.push_back({double(c), 0.1 * c * c, 0.05 * c * c, 0.2 * c * c});
  }
  request.lines = {positional, standard};
  return request;
}

TEST(Figure, LogarithmicX) {
  FigureRequest request = two_lines();
  request.logarithmic_x = true;
  EXPECT_THAT(draw_figure(request), HasSubstr("10"));  // ten values: powers of ten
  for (FigureLine& line : request.lines) line.points.resize(1);
  EXPECT_EQ(markup_problem(draw_figure(request)), "");
  for (FigureLine& line : request.lines) line.points = {{500, 1, 1, 1}, {7000, 2, 2, 2}};
  const std::string svg = draw_figure(request);
  EXPECT_THAT(svg, HasSubstr("> 500<"));
  EXPECT_THAT(svg, HasSubstr("> 7000<"));
}

TEST(Figure, IsOneSvgElement) {
  const std::string svg = draw_figure(two_lines());
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("positional"));
  EXPECT_THAT(svg, HasSubstr("standard"));
  EXPECT_THAT(svg, HasSubstr("#0072b2"));  // the two styles differ
  EXPECT_THAT(svg, HasSubstr("#d55e00"));
  EXPECT_THAT(svg, HasSubstr("polygon"));  // the bands
}

TEST(Figure, SaysWhatItShows) {
  const std::string svg = draw_figure(two_lines());
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"ood_title\">Errors &amp; scales</title>"));
  EXPECT_THAT(svg, HasSubstr("MSE on a logarithmic axis against c. Lines: positional; standard."));
  EXPECT_THAT(svg, Not(HasSubstr("GNUPLOT")));
}

// The text of both is as large as a caption, and neither has to shrink: page/page_parts.cc.
TEST(Figure, TextIsAsLargeInBothShapes) {
  const std::string wide = draw_figure(two_lines());
  const std::string narrow = draw_figure(two_lines(), FigureShape::narrow);
  EXPECT_EQ(markup_problem(narrow), "");
  EXPECT_THAT(wide, HasSubstr("width=\"516\""));
  EXPECT_THAT(narrow, HasSubstr("width=\"320\""));
  for (const std::string& svg : {wide, narrow}) {
    EXPECT_THAT(svg, HasSubstr("font-size=\"14.40\""));
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  }
}

TEST(Figure, TwoFiguresFitOnOnePage) {
  FigureRequest request = two_lines();
  const std::string first = draw_figure(request);
  request.name = "loss";
  EXPECT_EQ(markup_problem("<div>" + first + draw_figure(request) + "</div>"), "");
}

TEST(Figure, OneRunHasNoBand) {
  FigureRequest request = two_lines();
  for (FigureLine& line : request.lines) {
    for (BandPoint& point : line.points) point.low = point.high = point.median;
  }
  EXPECT_THAT(draw_figure(request), Not(HasSubstr("polygon")));
}

TEST(Figure, LabelsAreTextWhateverTheyHold) {
  FigureRequest request = two_lines();
  request.lines[0].label = "a_b^{c} <i> & it's `id`";
  const std::string svg = draw_figure(request);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("a_b^{c} &lt;i> &amp; it's `id`"));
}

TEST(Figure, BothAxesMayBeLogarithmic) {
  FigureRequest request = two_lines();
  const std::string linear = draw_figure(request);
  request.logarithmic_x = true;
  const std::string logarithmic = draw_figure(request);
  EXPECT_EQ(markup_problem(logarithmic), "");
  EXPECT_NE(logarithmic, linear);
  for (FigureLine& line : request.lines) line.points.front().x = 0;  // left out
  EXPECT_EQ(markup_problem(draw_figure(request)), "");
  for (FigureLine& line : request.lines) line.points.resize(1);
  EXPECT_EQ(draw_figure(request), "");
}

TEST(Figure, LeavesOutWhatALogarithmCannotShow) {
  FigureRequest request = two_lines();
  request.lines[0].points[2].median = 0;
  request.lines[0].points[3].median = NAN;
  request.lines[1].points[4].low = -1;
  EXPECT_EQ(markup_problem(draw_figure(request)), "");
  for (FigureLine& line : request.lines) {
    for (BandPoint& point : line.points) point.median = NAN;
  }
  EXPECT_EQ(draw_figure(request), "");
}

TEST(Figure, LegendNamesWhatIsDrawn) {
  FigureRequest request = two_lines();
  for (BandPoint& point : request.lines[1].points) point.median = NAN;
  const std::string svg = draw_figure(request);
  EXPECT_THAT(svg, HasSubstr("positional"));
  EXPECT_THAT(svg, Not(HasSubstr("standard")));
}

TEST(Figure, OnePointIsEnough) {
  FigureRequest request = two_lines();
  request.lines.resize(1);
  request.lines[0].points.resize(1);
  EXPECT_EQ(markup_problem(draw_figure(request)), "");
}

// A share goes from 0 to 1, and 0 is a value.
TEST(Figure, LinearAxisShowsZero) {
  FigureRequest request{.name = "share",
                        .title = "t",
                        .x_label = "k",
                        .y_label = "share",
                        .markers = true,
                        .lines = {{"a", 0, false, {{0, 0, 0, 0}, {3, 0, 0, 0}}}}};
  EXPECT_EQ(draw_figure(request), "");  // a logarithmic axis cannot
  request.greatest = 1;
  const std::string svg = draw_figure(request);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(svg.find("logarithmic"), std::string::npos);
  // Whole numbers and nothing between them.
  EXPECT_NE(svg.find("> 2<"), std::string::npos);
  EXPECT_EQ(svg.find("> 1.5<"), std::string::npos);
}

// Small shares do not lie at the foot of an axis that ends at 1.
TEST(Figure, LinearAxisEndsAboveTheValues) {
  EXPECT_EQ(linear_axis(0.6, 1).end, 0.75);
  EXPECT_EQ(linear_axis(0.75, 1).step, 0.25);
  EXPECT_EQ(linear_axis(0.19, 1).end, 0.2);
  EXPECT_EQ(linear_axis(0.8, 1).end, 1);
  EXPECT_EQ(linear_axis(0, 1).end, 1);  // nothing to see
  EXPECT_EQ(linear_axis(1.5, 10).end, 2);
}

}  // namespace
}  // namespace posattn

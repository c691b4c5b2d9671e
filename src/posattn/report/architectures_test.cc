#include <gtest/gtest.h>

#include <cmath>

#include "posattn/report/page/report_input.h"
#include "posattn/report/page/sample_report_test.h"

namespace posattn {
namespace {

TEST(Architectures, GroupsRunsAndTakesMedians) {
  const ReportInput input = sample_report();
  const auto groups = group_by_architecture(input);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "positional");
  EXPECT_EQ(groups[1].name, "standard");
  EXPECT_EQ(groups[1].runs.size(), 3U);
  EXPECT_EQ(groups[1].unfinished, 0);
  const std::map<double, Spread> tests = groups[1].tests("c", find_metric("mse"));
  EXPECT_EQ(tests.size(), 10U);
  const Spread last = tests.at(10);
  EXPECT_DOUBLE_EQ(last.median, 2 * 10.0);  // of 10, 20 and 30
  EXPECT_DOUBLE_EQ(last.minimum, 10.0);
  EXPECT_DOUBLE_EQ(last.maximum, 30.0);
  EXPECT_DOUBLE_EQ(groups[1].tests("c", find_metric("mse_over_c2")).at(10).median, 0.2);
  EXPECT_TRUE(groups[1].tests("length", find_metric("mse")).empty());
}

TEST(Architectures, RunsComputedInDifferentWaysHaveNoCommonMedian) {
  ReportInput input = sample_report();
  for (int run = 0; run < 3; ++run) input.runs[run].execution = run == 1 ? "cpu" : "cuda";
  const auto groups = group_by_architecture(input);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].name, "positional (cuda)");
  EXPECT_EQ(groups[0].tests("c", find_metric("mse")).at(10).count, 2);
  EXPECT_EQ(groups[1].name, "positional (cpu)");
  EXPECT_EQ(groups[2].name, "standard");
}

TEST(Architectures, AFailedRunIsCounted) {
  ReportInput input = sample_report();
  input.runs[1].status = "diverged";
  input.runs[1].tests.clear();
  const auto groups = group_by_architecture(input);
  EXPECT_EQ(groups[0].unfinished, 1);
  EXPECT_EQ(groups[0].tests("c", find_metric("mse")).at(10).count, 2);
}

TEST(Architectures, FiguresHoldMedianAndExtremes) {
  const ReportInput input = sample_report();
  const FigureRequest request =
      test_figure(group_by_architecture(input), find_evaluation_axis("c"), find_metric("mse"));
  ASSERT_EQ(request.lines.size(), 2U);
  const BandPoint& point = request.lines[0].points[2];
  EXPECT_DOUBLE_EQ(point.x, 3);
  EXPECT_DOUBLE_EQ(point.low, 9e-4);
  EXPECT_DOUBLE_EQ(point.median, 1.8e-3);
  EXPECT_DOUBLE_EQ(point.high, 2.7e-3);
}

TEST(Architectures, LongCurvesAreThinnedButKeepTheirEnds) {
  ReportInput input = sample_report();
  for (RunReport& run : input.runs) {
    run.curve.clear();
    for (int epoch = 1; epoch <= 2001; ++epoch) run.curve.push_back({epoch, 1.0 / epoch, {}});
  }
  const FigureRequest request = loss_figure(group_by_architecture(input));
  ASSERT_EQ(request.lines.size(), 2U);  // no validation, no line for it
  const auto& points = request.lines[0].points;
  EXPECT_LE(points.size(), 401U);
  EXPECT_EQ(points.front().x, 1);
  EXPECT_EQ(points.back().x, 2001);
}

}  // namespace
}  // namespace posattn

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/experiments/curves.h"

namespace posattn {
namespace {

using testing::ElementsAre;

const std::string file = R"toml(
tasks = ["mixed-min", "mixed-sum"]
seeds = "0..2"
baselines = ["query-blind", "oracle"]
[axis]
key = "test-scales"
values = [1, 3]
[settings]
range = 5
test-samples = 5000
test-scales = "1,3"
[[lines]]
name = "positional"
architecture = "positional"
[[lines]]
name = "standard"
architecture = "standard"
positions = "added"
)toml";

Experiment read_mine(const std::string& toml, const ExperimentChanges& changes = {}) {
  return read_experiment(toml, "mine", "mine.toml", changes);
}

// The first two seeds of mixed-min are finished.
std::optional<RunResult> find_result(const Experiment& experiment, const std::string& key) {
  for (const ExperimentRun& run : runs_of(experiment)) {
    if (run.key != key || run.config.seed == 2 || run.task != "mixed-min") continue;
    RunResult result;
    result.measurements = {{Split::test, "c", 1, "mse", 1}, {Split::test, "c", 3, "mse", 2}};
    return result;
  }
  return {};
}

std::vector<Curve> test_curves(const Experiment& experiment) {
  std::vector<Curve> curves =
      curves_of(experiment, [&](const std::string& key) { return find_result(experiment, key); });
  std::erase_if(curves, [](const Curve& curve) { return curve.split != Split::test; });
  return curves;
}

TEST(BaselineCurve, LiesBesideTheLinesOnTheSamplesOfFinishedRuns) {
  const Experiment experiment = read_mine(file);
  EXPECT_EQ(runs_of(experiment).size(), 2u * 2 * 3);
  const std::vector<Curve> curves = test_curves(experiment);
  ASSERT_EQ(curves.size(), 4u);  // of mixed-min alone
  EXPECT_EQ(curves[2].line, "query-blind");
  EXPECT_EQ(curves[3].line, "oracle");
  const std::vector<PointSummary> points = summarise(experiment, curves);
  for (const PointSummary& point : points) EXPECT_EQ(point.runs, 2);
  const auto median = [&](const char* line, double x) {
    return std::ranges::find_if(
               points,
               [&](const PointSummary& point) { return point.line == line && point.x == x; })
        ->median;
  };
  EXPECT_NEAR(median("query-blind", 1), 0.0113, 0.002);
  EXPECT_NEAR(median("query-blind", 3), 0.1126, 0.02);
  EXPECT_EQ(median("oracle", 3), 0);
  EXPECT_THAT(to_csv(points), testing::HasSubstr("mine,mixed-min,oracle,test,3,2,0,0,0,0,0\n"));
}

TEST(BaselineCurve, OverASettingItIsTestedWhereRunsAre) {
  std::string over = file;
  over.replace(over.find("key = \"test-scales\""), 19, "key = \"samples\"\ntest-scale = 3");
  over.replace(over.find("[1, 3]"), 6, "[20, 40]");
  over.replace(over.find("range = 5"), 9, "range = 5\nbatch = 10");
  const Experiment experiment = read_mine(over);
  const Curve curve = baseline_curve(experiment, "mixed-min", "query-blind", {0, 1});
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_EQ(curve.points[0].x, 20);
  EXPECT_EQ(curve.points[0].runs, curve.points[1].runs);
  EXPECT_EQ(curve.points[0].runs,
            baseline_curve(read_mine(file), "mixed-min", "query-blind", {0, 1}).points[1].runs);
}

TEST(BaselineCurve, ChosenLinesKeepTheirBaselines) {
  std::vector<std::string> names;
  for (const ExperimentLine& line : read_mine(file, {.lines = {"standard"}}).lines) {
    names.push_back(line.name);
  }
  EXPECT_THAT(names, ElementsAre("standard", "query-blind", "oracle"));
}

// The compiled network is exact for k-hop and for numbers, on the samples of the first seed.
TEST(BaselineCurve, CompiledNetworksMakeNoError) {
  const std::string hops = R"toml(
tasks = ["k-hop"]
seeds = "0..1"
metric = "label_error"
baselines = ["compiled"]
[axis]
key = "k-unseen"
values = [0, 3]
[settings]
length = 12
test-samples = 20
test-axis = "k-unseen=0..3"
[[lines]]
name = "standard"
architecture = "standard"
)toml";
  const std::string numbers = R"toml(
tasks = ["sort", "min-sum"]
seeds = "0..1"
baselines = ["compiled"]
[axis]
key = "test-scales"
values = [1, 10]
[settings]
test-samples = 20
[[lines]]
name = "positional"
architecture = "positional"
)toml";
  struct Case {
    const std::string& text;
    std::string task;
    double most;
  };
  for (const Case& each :
       {Case{hops, "k-hop", 0}, Case{numbers, "sort", 1e-9}, Case{numbers, "min-sum", 1e-9}}) {
    const Curve curve = baseline_curve(read_mine(each.text), each.task, "compiled", {1, 0});
    ASSERT_EQ(curve.points.size(), 2u) << each.task;
    for (const CurvePoint& point : curve.points) {
      ASSERT_EQ(point.runs.size(), 1u);
      EXPECT_EQ(point.runs[0].first, 1u);
      EXPECT_LE(point.runs[0].second, each.most) << each.task;
    }
  }
}

TEST(BaselineCurve, WhatTheFileSaysWrong) {
  const auto problem = [](const std::string& from, const std::string& to) {
    std::string wrong = file;
    wrong.replace(wrong.find(from), from.size(), to);
    try {
      read_mine(wrong);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.problem();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(problem("\"oracle\"", "\"delphi\""),
            "unknown baseline of task mixed-min 'delphi' in mine.toml:4");
  EXPECT_EQ(problem("\"mixed-sum\"", "\"sort\""),
            "unknown baseline of task sort 'query-blind' in mine.toml:4");
  EXPECT_THAT(problem("\"oracle\"", "\"query-blind\""), testing::HasSubstr("mine.toml:4"));
  EXPECT_THAT(problem("[\"query-blind\", \"oracle\"]", "3"), testing::HasSubstr("mine.toml:4"));
}

}  // namespace
}  // namespace posattn

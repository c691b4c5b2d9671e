#include "posattn/experiments/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::Pair;

Experiment experiment_over(const std::string& key, const std::vector<double>& values) {
  Experiment experiment;
  experiment.name = experiment.output_name = "small";
  experiment.tasks = {"sort", "cumulative-sum"};
  experiment.seeds = {0, 1, 2};
  experiment.axis = {.key = key, .values = values, .label = "x", .test_x = 3};
  experiment.lines = {{"positional", {{"architecture", "positional"}}},
                      {"standard", {{"architecture", "standard"}}}};
  return experiment;
}

// Losses that tell run, split and scale apart.
RunResult result_of(const ExperimentRun& run, const std::vector<double>& scales) {
  const double base = 100 * run.x.value_or(0) + static_cast<double>(run.config.seed) +
                      (run.line == "standard" ? 0.5 : 0);
  RunResult result;
  result.key = run.key;
  result.configuration = "{}";
  result.measurements = {{Split::train, "", 0, "mse", base + 0.1},
                         {Split::validation, "", 0, "mse", base + 0.2}};
  for (const double c : scales) {
    result.measurements.push_back({Split::test, "c", c, "mse", base + 1000 * c});
    result.measurements.push_back({Split::test, "c", c, "accuracy", 1 / (base + c)});
  }
  return result;
}

using Results = std::map<std::string, RunResult>;

Results results_of(const Experiment& experiment, const std::vector<double>& scales) {
  Results results;
  for (const ExperimentRun& run : runs_of(experiment)) results[run.key] = result_of(run, scales);
  return results;
}

std::vector<Curve> curves(const Experiment& experiment, const Results& results) {
  return curves_of(experiment, [&](const std::string& key) -> std::optional<RunResult> {
    const auto at = results.find(key);
    if (at == results.end()) return std::nullopt;
    return at->second;
  });
}

const ExperimentRun& find_run(const std::vector<ExperimentRun>& runs, const std::string& task,
                              const std::string& line, int64_t seed) {
  return *std::find_if(runs.begin(), runs.end(), [&](const ExperimentRun& run) {
    return run.task == task && run.line == line && run.config.seed == seed;
  });
}

TEST(Curves, OverTestScales) {
  const Experiment experiment = experiment_over("test-scales", {1, 3});
  const std::vector<Curve> all = curves(experiment, results_of(experiment, {1, 2, 3}));
  ASSERT_EQ(all.size(), 12u);  // 2 tasks, 2 lines, 3 splits
  EXPECT_EQ(all[0].task, "sort");
  EXPECT_EQ(all[3].line, "standard");
  EXPECT_EQ(all[6].task, "cumulative-sum");
  EXPECT_EQ(all[0].split, Split::train);
  ASSERT_EQ(all[0].points.size(), 1u);
  EXPECT_FALSE(all[0].points[0].x.has_value());
  EXPECT_THAT(all[0].points[0].runs, ElementsAre(Pair(0, 0.1), Pair(1, 1.1), Pair(2, 2.1)));
  EXPECT_EQ(all[1].split, Split::validation);
  EXPECT_THAT(all[1].points[0].runs, ElementsAre(Pair(0, 0.2), Pair(1, 1.2), Pair(2, 2.2)));
  EXPECT_EQ(all[5].split, Split::test);
  ASSERT_EQ(all[5].points.size(), 2u);
  EXPECT_EQ(all[5].points[1].x, 3);
  EXPECT_THAT(all[5].points[1].runs,
              ElementsAre(Pair(0, 3000.5), Pair(1, 3001.5), Pair(2, 3002.5)));
}

TEST(Curves, OverASettingAreTestedAtOneScale) {
  const Experiment experiment = experiment_over("samples", {2000, 4000});
  const std::vector<Curve> all = curves(experiment, results_of(experiment, {1, 3}));
  ASSERT_EQ(all.size(), 12u);
  for (const Curve& curve : all) {
    ASSERT_EQ(curve.points.size(), 2u);
    EXPECT_EQ(curve.points[0].x, 2000);
    EXPECT_EQ(curve.points[1].x, 4000);
  }
  EXPECT_EQ(all[0].points[1].runs[2].second, 400002.1);
  EXPECT_EQ(all[2].points[1].runs[2].second, 403002);  // 1000 c, c = 3
}

TEST(Curves, OfAccuracyAreTestsAlone) {
  Experiment experiment = experiment_over("test-scales", {1, 3});
  experiment.metric = &find_metric("accuracy");
  const std::vector<Curve> all = curves(experiment, results_of(experiment, {1, 3}));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].split, Split::test);
  EXPECT_EQ(all[0].points[1].runs[1].second, 0.25);  // 1 / (1 + 3)
}

TEST(Curves, CountWhatIsMissingFailedOrDiverged) {
  const Experiment experiment = experiment_over("test-scales", {1, 3});
  const std::vector<ExperimentRun> runs = runs_of(experiment);
  Results results = results_of(experiment, {1, 3});
  results.erase(find_run(runs, "sort", "positional", 1).key);
  results[find_run(runs, "sort", "positional", 2).key].status = RunStatus::failed;
  RunResult& diverged = results[find_run(runs, "sort", "standard", 0).key];
  diverged.status = RunStatus::diverged;
  diverged.measurements.clear();
  std::erase_if(results[find_run(runs, "sort", "standard", 1).key].measurements,
                [](const Measurement& row) { return row.x == 3; });
  std::erase_if(results[find_run(runs, "sort", "standard", 2).key].measurements,
                [](const Measurement& row) { return row.split == Split::validation; });
  for (int64_t seed = 0; seed < 3; ++seed) {
    results.erase(find_run(runs, "cumulative-sum", "positional", seed).key);
  }
  const std::vector<Curve> all = curves(experiment, results);
  ASSERT_EQ(all.size(), 9u);  // nothing of cumulative-sum, positional
  for (const CurvePoint& point : all[2].points) {
    EXPECT_EQ(point.runs.size(), 1u);
    EXPECT_EQ(point.missing, 2);
    EXPECT_EQ(point.diverged, 0);
  }
  EXPECT_EQ(all[4].points[0].missing, 1);  // validation
  const Curve& tests = all[5];
  EXPECT_EQ(tests.points[0].missing, 0);
  EXPECT_EQ(tests.points[0].diverged, 1);
  EXPECT_EQ(tests.points[0].runs[0].second, infinity);
  EXPECT_EQ(tests.points[1].missing, 1);
  EXPECT_EQ(tests.points[1].runs.size(), 2u);
}

TEST(Curves, OverTheLengthsOfTests) {
  Experiment experiment = experiment_over("test-lengths", {4, 8, 16});
  experiment.axis.test_axis = find_evaluation_axis("length");
  Results results = results_of(experiment, {4});  // at c = 4: another axis
  for (auto& [key, result] : results) {
    for (const double n : {4, 8}) {
      result.measurements.push_back({Split::test, "length", n, "mse", 100 * n});
    }
  }
  EXPECT_EQ(experiment.axis.name(), "length");
  const std::vector<Curve> all = curves(experiment, results);
  ASSERT_EQ(all.size(), 12u);
  const Curve& tests = all[2];
  ASSERT_EQ(tests.points.size(), 2u);  // nothing at 16
  EXPECT_EQ(tests.points[1].x, 8);
  EXPECT_EQ(tests.points[1].runs.size(), 3u);
  EXPECT_EQ(tests.points[1].runs[0].second, 800);
}

TEST(Curves, OfADerivedMetric) {
  Experiment experiment = experiment_over("test-scales", {1, 3});
  experiment.metric = &find_metric("mse_over_c2");
  const std::vector<Curve> all = curves(experiment, results_of(experiment, {1, 3}));
  ASSERT_EQ(all.size(), 4u);  // only tests
  EXPECT_EQ(all[0].points[1].runs[1].second, (1 + 1000 * 3) / 9.0);
}

TEST(Curves, FromADatabase) {
  const TemporaryFolder folder;
  const Experiment experiment = experiment_over("test-scales", {1, 3});
  const Results results = results_of(experiment, {1, 3});
  {
    ResultsDatabase database(folder.path(), ResultsDatabase::Access::write);
    for (const auto& [key, result] : results) database.record(result);
  }
  const ResultsDatabase database(folder.path(), ResultsDatabase::Access::read);
  const auto summaries = summarise(experiment, curves_of(experiment, database));
  EXPECT_EQ(to_csv(summaries), to_csv(summarise(experiment, curves(experiment, results))));
  EXPECT_EQ(summaries.size(), 2u * 2 * (1 + 1 + 2));
}

TEST(PointSummaries, HaveTheQuantilesOfNumpy) {
  // numpy.quantile([0..4, 10], [0.1, 0.5, 0.9]): positions 0.5, 2.5 and 4.5.
  const Experiment experiment = experiment_over("test-scales", {1});
  const Curve curve{.task = "sort", .line = "standard", .split = Split::test, .points = {}};
  const CurvePoint point{.x = 2, .runs = {{0, 10}, {1, 3}, {2, 0}, {3, 4}, {4, 1}, {5, 2}}};
  const PointSummary summary = summarise(experiment, curve, point);
  EXPECT_EQ(summary.experiment, "small");
  EXPECT_EQ(summary.task, "sort");
  EXPECT_EQ(summary.line, "standard");
  EXPECT_EQ(summary.x, 2);
  EXPECT_EQ(summary.runs, 6);
  EXPECT_EQ(summary.minimum, 0);
  EXPECT_DOUBLE_EQ(summary.q10, 0.5);
  EXPECT_DOUBLE_EQ(summary.median, 2.5);
  EXPECT_DOUBLE_EQ(summary.q90, 7);
  EXPECT_EQ(summary.maximum, 10);
}

// The summary of runs with losses 1, 2, ..., the last `diverged` of which diverged.
PointSummary summary_with(size_t runs, size_t diverged, const char* metric) {
  Experiment experiment = experiment_over("test-scales", {3});
  experiment.metric = &find_metric(metric);
  experiment.tasks = {"sort"};
  experiment.lines.resize(1);
  experiment.seeds.clear();
  for (size_t seed = 0; seed < runs; ++seed) experiment.seeds.push_back(seed);
  Results results;
  for (const ExperimentRun& run : runs_of(experiment)) {
    RunResult& result = results[run.key] = result_of(run, {3});
    set_value(result.measurements, {.axis = "c", .x = 3, .metric = "mse"},
              static_cast<double>(run.config.seed) + 1);
    const bool ended = run.config.seed < static_cast<int64_t>(runs - diverged);
    if (!ended) result.status = RunStatus::diverged;
  }
  const Curve curve = curves(experiment, results).back();
  EXPECT_EQ(curve.points.at(0).diverged, static_cast<int64_t>(diverged));
  return summarise(experiment, curve, curve.points[0]);
}

TEST(PointSummaries, ADivergedRunIsTheWorst) {
  const PointSummary one = summary_with(10, 1, "mse");
  EXPECT_EQ(one.runs, 10);
  EXPECT_EQ(one.minimum, 1);
  EXPECT_DOUBLE_EQ(one.q10, 1.9);
  EXPECT_DOUBLE_EQ(one.median, 5.5);
  EXPECT_EQ(one.q90, infinity);  // a tenth of the way from the ninth run to the tenth
  EXPECT_EQ(one.maximum, infinity);
  EXPECT_EQ(summary_with(11, 1, "mse").q90, 10);
  const PointSummary most = summary_with(10, 6, "mse");
  EXPECT_EQ(most.minimum, 1);
  EXPECT_EQ(most.median, infinity);
  EXPECT_EQ(summary_with(3, 3, "mse").minimum, infinity);
  const std::vector<PointSummary> read = points_from_csv(to_csv({one}), "x.csv");
  EXPECT_EQ(to_csv(read), to_csv({one}));
  EXPECT_EQ(read[0].maximum, infinity);
}

TEST(PointSummaries, ADivergedRunIsWrongEverywhere) {
  const PointSummary accuracy = summary_with(5, 1, "accuracy");
  EXPECT_EQ(accuracy.minimum, 0);
  EXPECT_GT(accuracy.median, 0);
  EXPECT_EQ(accuracy.maximum, 1 / 3.0);
}

Experiment over_samples() {
  Experiment experiment;
  experiment.name = experiment.output_name = "small";
  experiment.tasks = {"sort"};
  experiment.seeds = {0, 1, 2};
  experiment.axis = {.key = "samples", .values = {1000, 2000}, .label = "m", .test_x = 3};
  experiment.lines = {{"positional", {{"architecture", "positional"}}},
                      {"standard", {{"architecture", "standard"}}}};
  return experiment;
}

TEST(MissingRuns, AreCountedByTaskLineAndX) {
  const Experiment experiment = over_samples();
  std::map<std::string, RunResult> results;
  for (const ExperimentRun& run : runs_of(experiment)) {
    if (run.line == "standard" && run.x == 2000) continue;  // nobody has tried these
    RunResult& result = results[run.key];
    if (run.line == "positional" && run.x == 1000 && run.config.seed > 0) {
      result.status = RunStatus::failed;
      result.message = "seed " + std::to_string(run.config.seed);
    }
    if (run.line == "standard") result.status = RunStatus::diverged;  // which is a result
  }
  const std::vector<MissingRuns> missing =
      missing_runs(experiment, [&](const std::string& key) -> std::optional<RunResult> {
        const auto at = results.find(key);
        if (at == results.end()) return std::nullopt;
        return at->second;
      });
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].line, "positional");
  EXPECT_EQ(missing[0].x, 1000);
  EXPECT_EQ(missing[0].runs, 3);
  EXPECT_EQ(missing[0].missing, 2);
  EXPECT_EQ(missing[0].failed, 2);
  EXPECT_EQ(missing[0].failure, "seed 1");
  EXPECT_EQ(missing[1].task, "sort");
  EXPECT_EQ(missing[1].line, "standard");
  EXPECT_EQ(missing[1].x, 2000);
  EXPECT_EQ(missing[1].missing, 3);
  EXPECT_EQ(missing[1].failed, 0);
}

}  // namespace

}  // namespace posattn

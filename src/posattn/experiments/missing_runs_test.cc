#include "posattn/experiments/missing_runs.h"

#include <gtest/gtest.h>

#include <map>

namespace posattn {
namespace {

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

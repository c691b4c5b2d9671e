// What the runs of an experiment gave, as the curves that figures draw and comparisons read.
#pragma once

#include "posattn/experiments/experiment.h"
#include "posattn/results/results_database.h"
#include "posattn/tasks/task.h"

namespace posattn {

// The values of all runs at one x.
struct CurvePoint {
  std::optional<double> x;  // absent: train and validation loss where x is that of a test
  std::vector<std::pair<uint64_t, double>> runs;  // seed and value, by seed; every finished run
  int64_t missing = 0;                            // runs of the grid that are not finished
  int64_t diverged = 0;                           // of `runs`: infinite loss, accuracy 0
};

struct Curve {
  std::string task, line;
  Split split = Split::test;
  std::vector<CurvePoint> points;  // by x
};

// The curves by task, line and split, in the experiment's order; points without a single run are
// left out. Where the metric is no loss there is only the test split. A run that failed is not
// finished; one that diverged is, as the worst of all. A baseline is measured for every seed with a
// finished run.
std::vector<Curve> curves_of(const Experiment& experiment, const ResultsDatabase& results);

// The curves of runs from anywhere: `find` gives the result of a run by its key, if there is one.
using FindResult = std::function<std::optional<RunResult>(const std::string& key)>;
std::vector<Curve> curves_of(const Experiment& experiment, const FindResult& find);

// The test split of a line; null where it has no point.
const Curve* test_curve(const std::vector<Curve>& curves, const std::string& task,
                        const std::string& line);

// A summarised point: one line of NAME.csv, with the columns of published.csv. Quantiles are those
// of spread_of: runs that diverged are at the far end, so that the largest loss is infinite, and
// the median too once half of the runs did.
struct PointSummary {
  std::string experiment, task, line;
  Split split = Split::test;
  std::optional<double> x;
  int64_t runs = 0;
  double minimum = 0, q10 = 0, median = 0, q90 = 0, maximum = 0;
};
PointSummary summarise(const Experiment& experiment, const Curve& curve, const CurvePoint& point);
std::vector<PointSummary> summarise(const Experiment& experiment, const std::vector<Curve>& curves);

// experiment,task,architecture,split,x,runs,min,q10,median,q90,max
// Reading is strict: Error(data) that starts with "name:line". Lines that begin with '#' are
// comments, names with commas are quoted.
std::string to_csv(const std::vector<PointSummary>& points);
std::vector<PointSummary> points_from_csv(std::string_view csv, const std::string& name);

// Runs of one task and line, and of one x where the axis is a setting, that have no result.
struct MissingRuns {
  std::string task, line;
  std::optional<double> x;
  int64_t runs = 0;     // of the grid
  int64_t missing = 0;  // of these
  int64_t failed = 0;   // of the missing ones: tried before
  std::string failure;  // what the first of these said
};

// What an experiment still lacks, in the order of the grid; places that lack nothing are left out.
std::vector<MissingRuns> missing_runs(const Experiment& experiment, const FindResult& find);

struct PointRow {
  PointSummary point;
  std::string text;  // of the last column, where the table has one
  int64_t line = 0;  // in the file
};

// The first line that is no comment must be the columns of to_csv, then `text_column` if it is not
// empty. Every point appears once. Throws Error(data) that starts with "name:line".
std::vector<PointRow> read_point_rows(std::string_view csv, const std::string& name,
                                      std::string_view text_column);

// Baselines of tasks (tasks/task.h) as further curves of an experiment.

// The test errors of a baseline on the samples that runs of these seeds are tested on. Nothing is
// trained or recorded: the samples follow from the settings.
Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds);

// The name of a baseline that no task offers itself: the exact network that posattn compiles for a
// task of the library (programs/*.par) or for k-hop.
inline constexpr std::string_view compiled_baseline = "compiled";

// The task's baseline of this name, or its compiled network. Throws unknown_name(usage), which
// names those that there are.
Baseline find_experiment_baseline(const Task& task, std::string_view name);

}  // namespace posattn

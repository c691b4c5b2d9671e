// Bounds and measured gaps over the runs of an experiment whose axis is a setting, as the number of
// training samples, the epochs or the depth.
#pragma once

#include "posattn/bounds/bound_report.h"
#include "posattn/experiments/experiment.h"

namespace posattn::bounds {

struct RunBounds {
  ExperimentRun run;  // it has an x
  BoundReport report;
};

struct ExperimentBounds {
  std::vector<RunBounds> runs;  // by task, x, line and seed
  int64_t missing = 0;          // runs of the grid whose weights are not there
};

// Bounds of the runs whose folders lie in `results`/runs. `request` says what is asked of each;
// name and run are filled in here. Throws Error(configuration) where the axis is one of tests,
// along which no bound changes, Error(data) where there are no weights: recorded results
// (runs.jsonl) have losses alone.
ExperimentBounds experiment_bounds(const Experiment& experiment,
                                   const std::filesystem::path& results,
                                   const ReportRequest& request);

// task,line,seed,x,samples,training_loss,fresh_loss,gap,gap_error,log10_by_norms,log10_by_count,risk
std::string to_csv(const ExperimentBounds& bounds);

}  // namespace posattn::bounds

// The paper's experiments and your own: train what is missing, curves, comparison, figures.
//   posattn::Experiment experiment = posattn::load_experiment("value-range", {.quick = true});
//   posattn::run_experiment(posattn::runs_of(experiment), {.results = "results", .threads = 2});
// Threads: an Experiment is a plain value. One run_experiment at a time works in a results folder,
// of this process or another; it calls `progress` from its threads, one at a time.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/experiments/comparison.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/experiments/runner.h"
#include "posattn/report/experiment/results.h"

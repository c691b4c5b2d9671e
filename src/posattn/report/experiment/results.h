// The experiments of a results folder, as their page shows them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"

namespace posattn {

// How far an experiment is, and what computed its runs. Counts the distinct runs of the experiment:
// done + diverged + failed + missing = runs.
struct RunTally {
  int64_t runs = 0;
  int64_t done = 0, diverged = 0, failed = 0, missing = 0;
  double seconds = 0;  // wall-clock time in which these runs were trained
  // How many runs by device and precision, and by version and commit of the program.
  std::map<std::pair<std::string, std::string>, int64_t> execution, builds;

  bool any() const { return done + diverged > 0; }
};

// When a run was trained: for `seconds`, until `ended` (UTC, 2025-01-31T12:00:00Z).
struct TrainingTime {
  std::string ended;
  double seconds = 0;
};
// The wall-clock time in which at least one of the runs was trained: the length of the union of
// their times. Runs that a GPU trains in lockstep each take as long as all of them together. A run
// that does not tell when it ended counts by itself.
double wall_clock_seconds(const std::vector<TrainingTime>& runs);

RunTally tally_runs(const Experiment& experiment, const FindResult& find);

struct ExperimentResults {
  Experiment experiment;
  std::vector<Curve> curves;
  std::vector<PublishedPoint> published;
  RunTally tally;
  std::string command;   // that makes them
  std::string manifest;  // manifest.json, or "" where there is none
};

// Reads those of `experiments` (names or files; none: all that are part of the program) that have a
// finished run in `folder`, each whole and with what --quick and --epochs made of it. Throws
// Error(data) when there is none, or none of one that is named.
std::vector<ExperimentResults> read_results(const std::filesystem::path& folder,
                                            const std::vector<std::string>& experiments);

// Throws Error(data) when there is nothing to show, Error(failed) when gnuplot cannot draw; without
// gnuplot the page has no figures.
std::string experiment_page(const std::string& title, const std::vector<ExperimentResults>& all);

}  // namespace posattn

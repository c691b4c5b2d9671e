// How far an experiment is, and what computed its runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "posattn/experiments/curves.h"

namespace posattn {

// Counts the distinct runs of the experiment: done + diverged + failed + missing = runs.
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

}  // namespace posattn

// How far an experiment is, and what computed its runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "posattn/experiments/curves.h"

namespace posattn {

// Over the distinct runs of the experiment: done + diverged + failed + missing = runs.
struct RunTally {
  int64_t runs = 0;
  int64_t done = 0, diverged = 0, failed = 0, missing = 0;
  double seconds = 0;  // of training, of all runs together
  // How many runs by device and precision, and by version and commit of the program.
  std::map<std::pair<std::string, std::string>, int64_t> execution, builds;

  bool any() const { return done + diverged > 0; }
};

RunTally tally_runs(const Experiment& experiment, const FindResult& find);

}  // namespace posattn

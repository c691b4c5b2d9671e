// What an experiment still lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posattn/experiments/curves.h"

namespace posattn {

// Runs of one task and line, and of one x where the axis is a setting, that have no result.
struct MissingRuns {
  std::string task, line;
  std::optional<double> x;
  int64_t runs = 0;     // of the grid
  int64_t missing = 0;  // of these
  int64_t failed = 0;   // of the missing ones: tried before
  std::string failure;  // what the first of these said
};

// In the order of the grid; places that lack nothing are left out.
std::vector<MissingRuns> missing_runs(const Experiment& experiment, const FindResult& find);

}  // namespace posattn

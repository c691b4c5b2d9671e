// How far the training of a grid has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "posattn/training/recording.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct GridProgress {
  int64_t runs = 0, ended = 0;       // of the whole grid
  int64_t diverged = 0, failed = 0;  // of those that ended in this sitting
  int64_t step = 0, steps = 0;       // of the runs that were missing
  double fraction = 0;               // of their work: a step of one may be many of another
  double steps_per_second = 0;       // of all runs together, in this sitting
  double seconds_left = 0;
};

// Adds up the steps of runs, and what they cost: in a grid over lengths the last runs take most of
// the time.
class GridSteps {
 public:
  explicit GridSteps(const std::vector<RunConfig>& configs);

  void update(std::size_t run, const RunProgress& progress);
  GridProgress progress() const;  // its part about steps and time

 private:
  using Clock = std::chrono::steady_clock;

  struct Steps {
    int64_t done = 0, of = 0;
    bool seen = false;
    double cost = 1;  // of one
  };
  std::vector<Steps> runs_;
  int64_t done_ = 0, of_ = 0;
  int64_t before_ = 0;  // of those done: in earlier sittings
  double cost_done_ = 0, cost_of_ = 0, cost_before_ = 0;
  std::optional<Clock::time_point> started_;
};

}  // namespace posattn

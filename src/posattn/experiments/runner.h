// Trains what is missing of a grid in a results folder:
//   DIR/results.db   the result of every run that ended, recorded at the moment it ends
//   DIR/runs/KEY/    the run folders
// or a shard of it (shards.h), in that shard's folder. Whoever trains without one merges first.
// Being killed at any moment costs no more than what follows the last checkpoints: the same call
// goes on, and its results are the same.
#pragma once

#include <atomic>

#include "posattn/experiments/experiment.h"
#include "posattn/experiments/shards.h"
#include "posattn/training/recording.h"
#include "posattn/training/run_config.h"

namespace posattn {

// How far the training of a grid has come.

struct GridProgress {
  int64_t runs = 0, ended = 0;       // of the whole grid
  int64_t diverged = 0, failed = 0;  // of those that ended in this session
  int64_t step = 0, steps = 0;       // of the runs that were missing
  double fraction = 0;               // of their work: a step of one may be many of another
  double steps_per_second = 0;       // of all runs together, in this session
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

// How a grid, or a part of it, stands; each key counts once.
struct GridSurvey {
  int64_t runs = 0;
  int64_t done = 0, diverged = 0;  // need nothing more: they would give the same again
  int64_t failed = 0;              // of the missing ones: tried before
  int64_t begun = 0;               // of the missing ones: have a folder to go on from
  // Recorded by the runs so far; all of a run that needs nothing more. Only survey() counts them.
  int64_t epochs = 0;
  int64_t missing() const { return runs - done - diverged; }
  GridSurvey& operator+=(const GridSurvey& other);
};

// The runs of one task and line.
struct PartSurvey {
  std::string task, line;
  GridSurvey found;
};
// How the grid stands by task and line, in the order in which these come first. With a shard only
// its runs count.
std::vector<PartSurvey> survey(const std::filesystem::path& results,
                               const std::vector<ExperimentRun>& wanted,
                               const std::optional<Shard>& shard = {});
GridSurvey whole_of(const std::vector<PartSurvey>& parts);

struct RunnerOptions {
  std::filesystem::path results;
  std::optional<Shard> shard = {};  // only its runs
  int threads = 1;
  int64_t device_memory = 0;                          // as FleetOptions has it
  std::string command_line;                           // for manifests
  const std::atomic<bool>* stop = nullptr;            // set: checkpoint every run and return
  bool fail_fast = false;                             // the first failure does the same
  std::function<void(const GridSurvey&)> found;       // once, before anything is trained
  std::function<void(const GridProgress&)> progress;  // called by one thread at a time
  std::function<void(const std::string&)> notice;     // a line for the user
};

struct RunFailure {
  std::string key;
  std::filesystem::path folder;
  std::string message;
};

struct GridSummary {
  int64_t runs = 0;
  int64_t there = 0;               // had ended before
  int64_t done = 0, diverged = 0;  // in this session
  int64_t interrupted = 0;         // still missing
  std::vector<RunFailure> failures;
};

// A run that fails, or whose folder is broken, is recorded as failed and the others go on; the next
// call tries it again. Throws Error(failed) when another process works in the folder, and what
// stops every run: Error(device), a full disk.
GridSummary run_experiment(const std::vector<ExperimentRun>& wanted, const RunnerOptions& options);

}  // namespace posattn

// One run in its folder: goes on from its checkpoint, writes metrics, checkpoints, the model and
// the manifest, and says how it ended.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "posattn/results/run_folder.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"

namespace posattn {

// Where one run stands; handed to the progress callback when the run starts, after every epoch and
// when it ends.
struct RunProgress {
  std::size_t run = 0;  // its place in the fleet's list
  std::string architecture;
  int64_t seed = 0;
  int64_t epoch = 0, epochs = 0;
  int64_t step = 0, steps = 0;
  double train_loss = 0;                  // of the last epoch; NaN before the first
  std::optional<double> validation_loss;  // the last one measured
  double steps_per_second = 0;            // in this sitting
  double seconds_left = 0;                // of this run
  RunStatus status = RunStatus::running;
};

struct RunOutcome {
  RunConfig config;
  std::filesystem::path folder;
  RunStatus status = RunStatus::running;
  bool already_done = false;        // it had ended before; nothing was trained
  std::string message;              // why it diverged or failed
  int64_t epoch = 0;                // completed
  std::optional<EpochRecord> last;  // the last completed epoch; absent when there is none
};

struct RecordingOptions {
  std::string command_line;                          // for the manifest
  const std::atomic<bool>* stop = nullptr;           // set: write a checkpoint and return
  std::function<int()> threads = [] { return 1; };   // asked before every epoch
  std::function<void(const RunProgress&)> progress;  // may be empty
};

// Never throws for what happens to the run itself: a failure (a full disk) is an outcome.
RunOutcome train_in_folder(const RunConfig& config, RunFolder& folder,
                           const RecordingOptions& options);

}  // namespace posattn

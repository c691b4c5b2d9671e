// What a run leaves in its folder while it trains, whichever engine does that: it says from which
// state to go on, writes metrics, checkpoints, the model and the manifest, and how it ended.
//   Recording recording(config, folder, options);
//   if (recording.ended_before()) return recording.outcome();
//   state = recording.start(); ...; recording.begin(state, steps_per_epoch);
//   recording.record_epoch(record); if (recording.checkpoint_due()) recording.checkpoint(state);
//   ... recording.finish(state, divergence);      on any exception: recording.fail(error)
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <span>

#include "posattn/base/error.h"
#include "posattn/results/run_folder.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"

namespace posattn {

// Where one run stands; handed to the progress callback when the run starts, after every epoch and
// when it ends: its files then say so already. Of a run that had ended before, or that fails before
// it starts, that is the only word.
struct RunProgress {
  std::size_t run = 0;  // its place in the fleet's list
  std::string architecture;
  int64_t seed = 0;
  int64_t epoch = 0, epochs = 0;
  int64_t step = 0, steps = 0;
  double train_loss = 0;                  // of the last epoch; NaN before the first, or if lost
  std::optional<double> validation_loss;  // the last one measured
  double steps_per_second = 0;            // in this sitting
  double seconds_left = 0;                // of this run
  RunStatus status = RunStatus::running;
};

struct RunOutcome {
  RunConfig config;
  std::filesystem::path folder;
  RunStatus status = RunStatus::running;
  bool already_done = false;            // it had ended before; nothing was trained
  std::string message;                  // why it diverged or failed
  ExitCode failure = ExitCode::failed;  // where it failed: the program's, if nothing else is wrong
  int64_t epoch = 0;                    // completed
  std::optional<EpochRecord> last;      // the last completed epoch; absent when there is none
};

struct RecordingOptions {
  std::string command_line;                          // for the manifest
  std::map<std::string, std::string> engine;         // for the manifest: device, path, ...
  std::function<void(const RunProgress&)> progress;  // may be empty
  std::function<void(const std::string&)> notice;    // a line for the user; may be empty
};

class Recording {
 public:
  Recording(const RunConfig& config, RunFolder& folder, RecordingOptions options);

  // Whether the run had ended in an earlier sitting; the outcome and progress then say how.
  bool ended_before();

  // Makes the folder this run's. The state of its checkpoint, or else the first one. Throws
  // Error(data) where a run that is to be extended has no checkpoint.
  RunState start();
  // What the manifest says of the engine from its next writing on.
  void set_engine(std::map<std::string, std::string> engine);
  // Training begins from `state`, which is start()'s.
  void begin(const RunState& state, int64_t steps_per_epoch);

  void record_epoch(const EpochRecord& record);  // one line of metrics
  bool checkpoint_due() const;
  void checkpoint(const RunState& state);

  // The run ends at `state`: all epochs are done, or it diverged (and how), or it was interrupted.
  void finish(const RunState& state, const std::string& divergence);
  void fail(const std::exception& error);
  void interrupt_before_start();

  const RunOutcome& outcome() const { return outcome_; }

 private:
  using Clock = std::chrono::steady_clock;

  void reopen(RunState& state);
  void save(const RunState& state);
  std::optional<EpochRecord> last_record() const;
  void tell_lost_records(int64_t trained) const;
  EpochRecord record_of(const std::vector<std::string>& lines, std::size_t index) const;
  void write_ending();
  void report(RunStatus status) const;

  RunConfig config_;
  RunFolder& folder_;
  RecordingOptions options_;
  RunOutcome outcome_;
  Manifest manifest_;
  bool started_writing_ = false, began_ = false;
  int64_t epoch_ = 0, step_ = 0;  // completed
  std::optional<double> validation_loss_;
  int64_t steps_per_epoch_ = 0;
  int64_t first_step_ = 0;  // of this sitting
  Clock::time_point started_, checkpointed_;
};

// A run's state as one safetensors file, written atomically: the weights under their own names,
// Adam's moments under "optimiser.first.NAME" and "optimiser.second.NAME", the counters, the
// schedule and the configuration in the metadata. Random numbers are functions of seed, epoch and
// index, so the counters are the whole random state. Numbers are stored exactly.

void save_checkpoint(const std::filesystem::path& path, const RunConfig& config,
                     const RunState& state);

// Throws Error(data) for a file that is no checkpoint and Error(configuration), naming the settings
// that differ, for a checkpoint of another configuration (result_neutral_keys may differ, and the
// number of epochs where a run can be extended).
RunState load_checkpoint(const std::filesystem::path& path, const RunConfig& config);

// A checkpoint as bytes; `path` stands for them in errors.
std::vector<std::byte> checkpoint_bytes(const RunConfig& config, const RunState& state);
RunState state_from_checkpoint(std::span<const std::byte> bytes, const RunConfig& config,
                               const std::filesystem::path& path);

}  // namespace posattn

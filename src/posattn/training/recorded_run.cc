#include "posattn/training/recorded_run.h"

namespace posattn {
namespace {

void train(const RunConfig& config, const RecordedRunOptions& options, Recording& recording) {
  Run run(config, options.threads(), recording.start());
  recording.begin(run.state(), run.steps_per_epoch());
  const auto stopped = [&] {
    return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
  };
  while (!run.finished() && !stopped()) {
    run.set_threads(options.threads());
    const std::optional<EpochRecord> record = run.advance_epoch(options.stop);
    if (!record) break;
    recording.record_epoch(*record);
    if (recording.checkpoint_due()) recording.checkpoint(run.state());
  }
  recording.finish(run.state(), run.divergence());
}

}  // namespace

RunOutcome train_in_folder(const RunConfig& config, RunFolder& folder,
                           const RecordedRunOptions& options) {
  Recording recording(config, folder, options.recording);
  try {
    if (recording.ended_before()) return recording.outcome();
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) {
      recording.interrupt_before_start();
    } else {
      train(config, options, recording);
    }
  } catch (const std::exception& error) {
    recording.fail(error);
  }
  return recording.outcome();
}

}  // namespace posattn

#include "posattn/training/data_parallel.h"

#include <optional>
#include <span>
#include <string_view>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/training/checkpoint.h"
#include "posattn/training/data_parallel_steps.h"
#include "posattn/training/fleet_folders.h"
#include "posattn/training/recording.h"

namespace posattn {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The state that a run goes on from; nothing where there is nothing to train, or a file is broken.
std::optional<RunState> first_state(Recording& recording, const FleetOptions& options) {
  try {
    if (recording.ended_before()) return std::nullopt;
    if (options.stop == nullptr || !*options.stop) return recording.start();
    recording.interrupt_before_start();
  } catch (const std::exception& error) {
    recording.fail(error);
  }
  return std::nullopt;
}

// Writes; whether that worked.
template <class Write>
bool written(Recording& recording, const Write& write) {
  try {
    write();
    return true;
  } catch (const std::exception& error) {
    recording.fail(error);
    return false;
  }
}

}  // namespace

DataParallelFleet::DataParallelFleet(std::vector<RunConfig> configs, FleetOptions options,
                                     Ranks& ranks)
    : configs_(std::move(configs)), options_(std::move(options)), ranks_(ranks) {
  blas_info();  // refuses a library that is not thread-safe before anything is written
  for (RunConfig& config : configs_) {
    if (config.device == "cuda") {
      throw Error(ExitCode::configuration, "device cuda with --data-parallel",
                  "cpu: ranks add their gradients on the CPU only",
                  "on GPUs train whole runs side by side: posattn reproduce under mpirun");
    }
    config.device = "cpu";
    config.precision = precision_used(config);
    validate(config);
  }
  if (ranks.rank() == 0) folders_ = std::make_unique<FleetFolders>(configs_, options_);
}

DataParallelFleet::~DataParallelFleet() = default;

std::vector<RunOutcome> DataParallelFleet::train() {
  std::vector<RunOutcome> outcomes;
  for (std::size_t run = 0; run < configs_.size(); ++run) {
    if (ranks_.rank() == 0) {
      outcomes.push_back(lead(run));
    } else {
      follow(configs_[run]);
    }
  }
  return outcomes;
}

RunOutcome DataParallelFleet::lead(std::size_t place) {
  const RunConfig& config = configs_[place];
  RecordingOptions recorded;
  recorded.command_line = options_.command_line;
  recorded.engine = {
      {"path", config.path}, {"device", "cpu"}, {"ranks", std::to_string(ranks_.size())}};
  recorded.progress = [this, place](RunProgress progress) {
    progress.run = place;
    if (options_.progress) options_.progress(progress);
  };
  Recording recording(config, (*folders_)[place], recorded);
  std::optional<RunState> state = first_state(recording, options_);
  ranks_.broadcast(state ? as_text(checkpoint_bytes(config, *state)) : "", 0);
  if (!state) return recording.outcome();

  DataParallelSteps steps(ranks_);
  Run run(config, options_.threads, std::move(*state), &steps);
  bool good = written(recording, [&] { recording.begin(run.state(), run.steps_per_epoch()); });
  while (good && !run.finished()) {
    const std::optional<EpochRecord> record = run.advance_epoch(options_.stop);
    if (!record) break;
    good = written(recording, [&] {
      recording.record_epoch(*record);
      if (recording.checkpoint_due()) recording.checkpoint(run.state());
    });
  }
  // The others are on their way into the next step.
  if (!good && !run.finished()) steps.withdraw(run.state().parameters.layout());
  if (good) written(recording, [&] { recording.finish(run.state(), run.divergence()); });
  return recording.outcome();
}

void DataParallelFleet::follow(const RunConfig& config) {
  const std::string bytes = ranks_.broadcast("", 0);
  if (bytes.empty()) return;
  DataParallelSteps steps(ranks_);
  Run run(config, options_.threads,
          state_from_checkpoint(std::as_bytes(std::span(bytes)), config, "rank 0's state"), &steps);
  while (!run.finished() && run.advance_epoch(options_.stop)) {
  }
}

}  // namespace posattn

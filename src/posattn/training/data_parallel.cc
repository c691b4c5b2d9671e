#include "posattn/training/data_parallel.h"

#include <exception>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/training/checkpoint.h"
#include "posattn/training/data_parallel_run.h"
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

// Device and precision are rank 0's choice: it sees the folders, and the GPUs of its machine. The
// others take them over, or find that they cannot.
void agree_on_device(std::vector<RunConfig>& configs, const FleetOptions& options, Ranks& ranks) {
  std::exception_ptr problem;
  std::string chosen;
  if (ranks.rank() == 0) {
    try {
      for (RunConfig& config : configs) {
        config = with_device(config, options);
        chosen += config.device + " " + config.precision + " ";
      }
    } catch (...) {
      problem = std::current_exception();
      chosen.clear();
    }
  }
  std::istringstream words(ranks.broadcast(chosen, 0));
  if (problem) std::rethrow_exception(problem);
  for (RunConfig& config : configs) words >> config.device >> config.precision;
  if (!words) throw Error(ExitCode::failed, "rank 0 could not choose a device");  // it says why
}

}  // namespace

DataParallelFleet::DataParallelFleet(std::vector<RunConfig> configs, FleetOptions options,
                                     Ranks& ranks)
    : configs_(std::move(configs)), options_(std::move(options)), ranks_(ranks) {
  blas_info();  // refuses a library that is not thread-safe before anything is written
  agree_on_device(configs_, options_, ranks_);
  for (const RunConfig& config : configs_) validate(config);
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
      {"path", config.path}, {"device", config.device}, {"ranks", std::to_string(ranks_.size())}};
  recorded.progress = [this, place](RunProgress progress) {
    progress.run = place;
    if (options_.progress) options_.progress(progress);
  };
  recorded.notice = options_.notice;
  Recording recording(config, (*folders_)[place], recorded);
  std::optional<RunState> state = first_state(recording, options_);
  ranks_.broadcast(state ? as_text(checkpoint_bytes(config, *state)) : "", 0);
  if (!state) return recording.outcome();

  DataParallelSteps steps(ranks_);
  const auto run = make_data_parallel_run(config, options_.threads, std::move(*state), steps);
  recording.set_engine(run->engine());
  bool good = written(recording, [&] { recording.begin(run->state(), run->steps_per_epoch()); });
  while (good && !run->finished()) {
    const std::optional<EpochRecord> record = run->advance_epoch(options_.stop);
    if (!record) {
      say_stopping(*run);
      break;
    }
    good = written(recording, [&] {
      recording.record_epoch(*record);
      if (recording.checkpoint_due()) recording.checkpoint(run->state());
    });
  }
  // The others are on their way into the next step.
  if (!good && !run->finished()) steps.withdraw(run->state().parameters.layout());
  if (good) written(recording, [&] { recording.finish(run->state(), run->divergence()); });
  return recording.outcome();
}

// Before the checkpoint is written: a launcher that ends the job may not wait for it.
void DataParallelFleet::say_stopping(const DataParallelRun& run) const {
  if (!run.divergence().empty() || !options_.notice) return;
  options_.notice("stopping: the checkpoint is being saved; --resume goes on from it");
}

void DataParallelFleet::follow(const RunConfig& config) {
  const std::string bytes = ranks_.broadcast("", 0);
  if (bytes.empty()) return;
  DataParallelSteps steps(ranks_);
  const auto run = make_data_parallel_run(
      config, options_.threads,
      state_from_checkpoint(std::as_bytes(std::span(bytes)), config, "rank 0's state"), steps);
  while (!run->finished() && run->advance_epoch(options_.stop)) {
  }
}

}  // namespace posattn

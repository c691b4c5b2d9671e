#include "posattn/training/recorded_run.h"

#include <chrono>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/training/checkpoint.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Recording {
 public:
  Recording(const RunConfig& config, RunFolder& folder, const RecordingOptions& options)
      : config_(config), folder_(folder), options_(options) {
    outcome_.config = config;
    outcome_.folder = folder.path();
    if (folder.previous()) outcome_.epoch = folder.previous()->epoch;
  }

  RunOutcome train() {
    try {
      if (ended_before()) return outcome_;
      if (stopped()) {
        outcome_.status = RunStatus::interrupted;
        return outcome_;
      }
      start();
      train_epochs();
      finish();
    } catch (const std::exception& error) {
      fail(error.what());
    }
    return outcome_;
  }

 private:
  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  // A finished run needs nothing; one whose model file is gone is finished again.
  bool ended_before() {
    const auto& previous = folder_.previous();
    if (!previous) return false;
    const bool done =
        previous->status == RunStatus::done && std::filesystem::exists(folder_.model());
    if (!done && previous->status != RunStatus::diverged) return false;
    outcome_.already_done = true;
    outcome_.status = previous->status;
    outcome_.message = previous->message;
    const std::string& last = previous->final_metrics;
    if (!last.empty()) outcome_.last = epoch_record_from_json(last);
    return true;
  }

  void start() {
    manifest_.started = folder_.previous() ? folder_.previous()->started : utc_now();
    manifest_.configuration = to_json(config_);
    manifest_.seeds = {{"run", std::to_string(config_.seed)},
                       {"data", std::to_string(config_.data_seed_used())},
                       {"weights", std::to_string(config_.weight_seed_used())}};
    manifest_.engine = {{"path", config_.path}, {"device", "cpu"}};
    const BlasInfo& blas = blas_info();
    manifest_.libraries = {{"OpenBLAS", blas.configuration}, {"OpenBLAS kernels", blas.kernel}};
    manifest_.command_line = options_.command_line;
    started_writing_ = true;
    folder_.write_manifest(manifest_);  // first: it is what makes the folder this run's
    folder_.write_config(to_toml(config_));

    run_.emplace(config_, options_.threads());
    if (std::filesystem::exists(folder_.checkpoint())) {
      run_->restore(load_checkpoint(folder_.checkpoint(), config_));
    }
    folder_.drop_metrics_after(run_->state().epoch);
    const std::string last = folder_.last_metrics();
    if (!last.empty()) outcome_.last = epoch_record_from_json(last);
    first_step_ = run_->state().optimiser.step;
    started_ = checkpointed_ = Clock::now();
    report(RunStatus::running);
  }

  void train_epochs() {
    while (!run_->finished() && !stopped()) {
      run_->set_threads(options_.threads());
      const std::optional<EpochRecord> record = run_->advance_epoch(options_.stop);
      if (!record) break;
      folder_.append_metrics(to_json(*record));
      outcome_.last = record;
      report(RunStatus::running);
      if (seconds_since(checkpointed_) >= config_.checkpoint_every) {
        save_checkpoint(folder_.checkpoint(), config_, run_->state());
        checkpointed_ = Clock::now();
      }
    }
  }

  void finish() {
    save_checkpoint(folder_.checkpoint(), config_, run_->state());
    outcome_.message = run_->divergence();
    if (!outcome_.message.empty()) {
      outcome_.status = RunStatus::diverged;
    } else if (run_->finished()) {
      save_model(folder_.model(), run_->model());
      outcome_.status = RunStatus::done;
    } else {
      outcome_.status = RunStatus::interrupted;
    }
    write_ending();
  }

  void fail(const std::string& message) {
    outcome_.status = RunStatus::failed;
    outcome_.message = message;
    if (!started_writing_) return;  // what is there says more than we could
    try {
      write_ending();
    } catch (const std::exception&) {
      // What kept the run from going on may keep this from being written too; the outcome has it.
    }
  }

  void write_ending() {
    if (run_) outcome_.epoch = run_->state().epoch;
    manifest_.status = outcome_.status;
    manifest_.message = outcome_.message;
    manifest_.epoch = outcome_.epoch;
    manifest_.ended = utc_now();
    manifest_.final_metrics = outcome_.last ? to_json(*outcome_.last) : "";
    if (run_) report(outcome_.status);
    folder_.write_manifest(manifest_);
  }

  void report(RunStatus status) const {
    if (!options_.progress) return;
    const RunState& state = run_->state();
    RunProgress progress;
    progress.architecture = config_.architecture;
    progress.seed = config_.seed;
    progress.epoch = state.epoch;
    progress.epochs = config_.epochs;
    progress.step = state.optimiser.step;
    progress.steps = config_.epochs * run_->steps_per_epoch();
    progress.train_loss =
        outcome_.last ? outcome_.last->train_loss : std::numeric_limits<double>::quiet_NaN();
    progress.validation_loss = state.validation_loss;
    const auto steps_now = static_cast<double>(progress.step - first_step_);
    const double seconds = seconds_since(started_);
    if (steps_now > 0 && seconds > 0) {
      progress.steps_per_second = steps_now / seconds;
      progress.seconds_left =
          static_cast<double>(progress.steps - progress.step) / progress.steps_per_second;
    }
    progress.status = status;
    options_.progress(progress);
  }

  const RunConfig& config_;
  RunFolder& folder_;
  const RecordingOptions& options_;
  RunOutcome outcome_;
  Manifest manifest_;
  std::optional<Run> run_;
  bool started_writing_ = false;
  int64_t first_step_ = 0;  // of this sitting
  Clock::time_point started_, checkpointed_;
};

}  // namespace

RunOutcome train_in_folder(const RunConfig& config, RunFolder& folder,
                           const RecordingOptions& options) {
  return Recording(config, folder, options).train();
}

}  // namespace posattn

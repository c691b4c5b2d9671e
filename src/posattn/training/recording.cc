#include "posattn/training/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "posattn/kernels/cpu/blas.h"

namespace posattn {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The record of the epoch that `state` ends, where a power cut took it: what is due after that
// epoch is measured on the same weights, and a validation that the state remembers is taken from
// there. What was known during the epoch alone stays lost.
EpochRecord measured_again(const RunConfig& config, RunState state) {
  EpochRecord record;
  record.epoch = state.epoch;
  record.step = state.optimiser.step;
  record.train_loss = record.lr = std::numeric_limits<double>::quiet_NaN();
  record.validation_loss = state.validation_loss;
  record.seconds = state.seconds;
  Network network(training_spec(config), NetworkOptions{network_path(config), 1});
  RunEvaluation(config, 1).evaluate_when_due(network, 1, state, record);
  return record;
}

}  // namespace

Recording::Recording(const RunConfig& config, RunFolder& folder, RecordingOptions options)
    : config_(config), folder_(folder), options_(std::move(options)) {
  outcome_.config = config;
  outcome_.folder = folder.path();
  if (folder.previous()) outcome_.epoch = folder.previous()->epoch;
  // Until the data are there those of one length; several lengths may end in smaller batches.
  steps_per_epoch_ = (config.samples + config.batch - 1) / config.batch;
}

// A finished run needs nothing; one whose model file or last record is gone is finished again, and
// one of fewer epochs goes on.
bool Recording::ended_before() {
  const auto& previous = folder_.previous();
  if (!previous || !has_ended(previous->status)) return false;
  const bool done = previous->status == RunStatus::done;
  if (done && (previous->epoch < config_.epochs || !std::filesystem::exists(folder_.model()))) {
    return false;
  }
  std::optional<EpochRecord> last;
  if (!previous->final_metrics.empty()) {
    last = epoch_record_from_json(previous->final_metrics, folder_.manifest().string() + ": final");
  }
  if (done && (!last || last->epoch != previous->epoch)) return false;
  outcome_.already_done = true;
  outcome_.status = previous->status;
  outcome_.message = previous->message;
  outcome_.last = last;
  epoch_ = previous->epoch;
  if (last && last->epoch > 0) {
    steps_per_epoch_ = last->step / last->epoch;
    step_ = first_step_ = last->step;
    validation_loss_ = last->validation_loss;
  }
  report(outcome_.status);
  return true;
}

void Recording::interrupt_before_start() {
  outcome_.status = RunStatus::interrupted;
  if (started_writing_) write_ending();
}

RunState Recording::start() {
  const bool resumed = std::filesystem::exists(folder_.checkpoint());
  const auto& previous = folder_.previous();
  if (!resumed && previous && previous->status == RunStatus::done &&
      previous->epoch < config_.epochs) {
    throw Error(ExitCode::data,
                fmt::format("'{}' is missing: the run cannot go on from epoch {}",
                            folder_.checkpoint().string(), previous->epoch),
                "the state in which the run ended", "choose another --out to train from the start");
  }
  manifest_.started = folder_.previous() ? folder_.previous()->started : utc_now();
  manifest_.configuration = to_json(config_);
  manifest_.seeds = {{"run", std::to_string(config_.seed)},
                     {"data", std::to_string(config_.data_seed_used())},
                     {"weights", std::to_string(config_.weight_seed_used())}};
  manifest_.engine = options_.engine;
  const BlasInfo& blas = blas_info();
  manifest_.libraries = {{"OpenBLAS", blas.configuration}, {"OpenBLAS kernels", blas.kernel}};
  if (blas.products == "own") manifest_.libraries["products"] = "own";
  manifest_.command_line = options_.command_line;
  started_writing_ = true;
  folder_.write_manifest(manifest_);  // first: it is what makes the folder this run's
  folder_.write_config(to_toml(config_));
  if (!resumed) {
    RunState first = initial_state(config_);
    if (!config_.from.empty())
      write_file(folder_.start(), model_bytes(trained_model(config_, first)));
    return first;
  }
  RunState state = load_checkpoint(folder_.checkpoint(), config_);
  if (state.epoch < config_.epochs) reopen(state);
  return state;
}

// The run was to end here. Its model, and what was measured because the epoch was the last, are no
// part of the longer run. The checkpoint is written before the metrics, so that a crash in
// between leaves what this can do again.
void Recording::reopen(RunState& state) {
  std::filesystem::remove(folder_.model());
  folder_.drop_metrics_after(state.epoch);
  std::optional<EpochRecord> last = last_record();
  if (!last) return;
  const bool validated =
      last->validation_loss && !RunEvaluation::validation_due(config_, last->epoch);
  const bool tested = !last->tests.empty() && !RunEvaluation::tests_due(config_, last->epoch);
  if (!validated && !tested) return;
  if (tested) last->tests.clear();
  if (validated) {
    last->validation_loss.reset();
    state.validation_loss.reset();
    state.best_validation_loss.reset();
    const std::vector<std::string> lines = folder_.metrics_lines();
    for (std::size_t k = 0; k + 1 < lines.size(); ++k) {
      const std::optional<double> loss = record_of(lines, k).validation_loss;
      if (!loss) continue;
      state.validation_loss = loss;
      state.best_validation_loss = std::min(*loss, state.best_validation_loss.value_or(*loss));
    }
  }
  save_checkpoint(folder_.checkpoint(), config_, state);
  folder_.replace_last_metrics(to_json(*last));
}

std::optional<EpochRecord> Recording::last_record() const {
  const std::vector<std::string> lines = folder_.metrics_lines();
  if (lines.empty()) return std::nullopt;
  return record_of(lines, lines.size() - 1);
}

EpochRecord Recording::record_of(const std::vector<std::string>& lines, std::size_t index) const {
  const std::string where = fmt::format("{}:{}", folder_.metrics().string(), index + 1);
  return epoch_record_from_json(lines[index], where);
}

void Recording::set_engine(std::map<std::string, std::string> engine) {
  manifest_.engine = std::move(engine);
}

void Recording::begin(const RunState& state, int64_t steps_per_epoch) {
  folder_.drop_metrics_after(state.epoch);
  outcome_.last = last_record();
  tell_lost_records(state.epoch);
  epoch_ = state.epoch;
  step_ = first_step_ = state.optimiser.step;
  validation_loss_ = state.validation_loss;
  steps_per_epoch_ = steps_per_epoch;
  started_ = checkpointed_ = Clock::now();
  began_ = true;
  report(RunStatus::running);
}

// A file that was cut leaves a hole in the history, not in the training.
void Recording::tell_lost_records(int64_t trained) const {
  const int64_t kept = outcome_.last ? outcome_.last->epoch : 0;
  if (trained >= config_.epochs) --trained;  // finish measures the last epoch again
  if (kept >= trained || !options_.notice) return;
  options_.notice(
      fmt::format("note: {} has lost the records of epochs {} to {}; the weights are "
                  "those of the checkpoint",
                  folder_.metrics().string(), kept + 1, trained));
}

void Recording::record_epoch(const EpochRecord& record) {
  folder_.append_metrics(to_json(record));
  epoch_ = record.epoch;
  step_ = record.step;
  if (record.validation_loss) validation_loss_ = record.validation_loss;
  outcome_.last = record;
  report(RunStatus::running);
}

bool Recording::checkpoint_due() const {
  return seconds_since(checkpointed_) >= config_.checkpoint_every;
}

void Recording::checkpoint(const RunState& state) {
  save(state);
  checkpointed_ = Clock::now();
}

// Metrics first, so that a power cut never leaves a checkpoint of an epoch without its record.
void Recording::save(const RunState& state) {
  folder_.sync_metrics();
  save_checkpoint(folder_.checkpoint(), config_, state);
}

void Recording::finish(const RunState& state, const std::string& divergence) {
  const bool done = divergence.empty() && state.epoch >= config_.epochs;
  if (done && (!outcome_.last || outcome_.last->epoch != state.epoch)) {
    record_epoch(measured_again(config_, state));
  }
  save(state);
  epoch_ = state.epoch;
  step_ = state.optimiser.step;
  outcome_.message = divergence;
  if (!divergence.empty()) {
    outcome_.status = RunStatus::diverged;
  } else if (done) {
    write_file(folder_.model(), model_bytes(trained_model(config_, state)));
    outcome_.status = RunStatus::done;
  } else {
    outcome_.status = RunStatus::interrupted;
  }
  write_ending();
  report(outcome_.status);
}

void Recording::fail(const std::exception& error) {
  outcome_.status = RunStatus::failed;
  outcome_.message = error.what();
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr) outcome_.failure = known->code();
  if (started_writing_) {  // else what is there says more than we could
    try {
      write_ending();
    } catch (const std::exception&) {
      // What kept the run from going on may keep this from being written too; the outcome has it.
    }
  }
  report(RunStatus::failed);
}

void Recording::write_ending() {
  if (began_) outcome_.epoch = epoch_;
  manifest_.status = outcome_.status;
  manifest_.message = outcome_.message;
  manifest_.epoch = outcome_.epoch;
  manifest_.ended = utc_now();
  manifest_.final_metrics = outcome_.last ? to_json(*outcome_.last) : "";
  folder_.write_manifest(manifest_);
}

void Recording::report(RunStatus status) const {
  if (!options_.progress) return;
  RunProgress progress;
  progress.architecture = config_.architecture;
  progress.seed = config_.seed;
  progress.epoch = epoch_;
  progress.epochs = config_.epochs;
  progress.step = step_;
  progress.steps = config_.epochs * steps_per_epoch_;
  progress.train_loss =
      outcome_.last ? outcome_.last->train_loss : std::numeric_limits<double>::quiet_NaN();
  progress.validation_loss = validation_loss_;
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

}  // namespace posattn

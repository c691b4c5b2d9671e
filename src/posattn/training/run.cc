#include "posattn/training/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "posattn/tasks/dataset.h"
#include "posattn/training/batches.h"
#include "posattn/training/run_evaluation.h"
#include "posattn/training/run_parts.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

class Run::Implementation {
 public:
  Implementation(const RunConfig& config, int threads, RunState state)
      : config_(config),
        spec_(model_spec(config)),
        threads_(std::max(1, threads)),
        network_(make_network()),
        train_(training_data(config, state.epoch + 1, threads_)),
        train_epoch_(state.epoch + 1),
        steps_per_epoch_(EpochBatches::count(train_, config.batch)),
        optimiser_(optimiser_options(config)),
        schedule_(schedule_options(config, steps_per_epoch_)),
        state_(std::move(state)),
        gradient_(state_.parameters.shared_layout()),
        evaluation_(config, threads_) {
    const Task& task = find_task(config.task);
    for (const Dataset& set : train_) masks_.push_back(loss_mask(task, set.length));
  }

  const RunConfig& config() const { return config_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  bool finished() const { return state_.epoch >= config_.epochs || !divergence_.empty(); }
  const std::string& divergence() const { return divergence_; }
  const RunState& state() const { return state_; }

  void restore(RunState state) {
    state_ = std::move(state);
    divergence_.clear();
  }

  void set_threads(int threads) {
    if (threads == threads_) return;
    threads_ = threads;
    network_ = make_network();
  }

  std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop) {
    const Clock::time_point start = Clock::now();
    const RunState before = state_;
    EpochRecord record;
    if (!train_epoch(stop, record)) {
      state_ = before;
      return std::nullopt;
    }
    ++state_.epoch;
    record.epoch = state_.epoch;
    record.step = state_.optimiser.step;
    evaluation_.evaluate_when_due(network_, threads_, state_, record);
    state_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    record.seconds = state_.seconds;
    return record;
  }

  Model model() const { return trained_model(config_, state_); }

 private:
  Network make_network() const {
    NetworkOptions options;
    options.path = network_path(config_);
    options.threads = threads_;
    return Network(spec_, options);
  }

  // The steps of one epoch; false when stopped or diverged (divergence_ then says how).
  bool train_epoch(const std::atomic<bool>* stop, EpochRecord& record) {
    if (config_.fresh && train_epoch_ != state_.epoch + 1) {
      train_epoch_ = state_.epoch + 1;
      train_ = training_data(config_, train_epoch_, threads_);
    }
    EpochBatches batches(train_, config_.batch, config_.data_seed_used(), state_.epoch + 1);
    double summed_loss = 0;
    for (int64_t b = 0; b < batches.count(); ++b) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return false;
      const double loss = network_.gradient(state_.parameters, batches.gather(b),
                                            masks_[batches.set_of(b)], gradient_);
      if (!std::isfinite(loss)) return diverge(NotFinite::loss, loss);
      if (config_.clip > 0) clip_gradient(config_.clip, gradient_);
      record.lr = learning_rate(schedule_, state_.schedule, state_.optimiser.step);
      optimiser_step(optimiser_, record.lr, gradient_, state_.optimiser, state_.parameters);
      summed_loss += loss;
    }
    if (!all_finite(state_.parameters.values())) return diverge(NotFinite::weight);
    // The square of a huge gradient overflows first.
    if (!all_finite(state_.optimiser.second_moment.values())) {
      return diverge(NotFinite::squared_gradient);
    }
    record.train_loss = summed_loss / static_cast<double>(batches.count());
    after_epoch(schedule_, summed_loss, state_.schedule);
    return true;
  }

  bool diverge(NotFinite what, double loss = 0) {
    divergence_ = divergence_message(what, loss, state_.optimiser.step + 1, state_.epoch + 1);
    return false;
  }

  RunConfig config_;
  ModelSpec spec_;
  int threads_;
  Network network_;
  std::vector<Dataset> train_;               // one set per length
  int64_t train_epoch_;                      // the epoch it was made for
  std::vector<std::vector<uint8_t>> masks_;  // of each set
  int64_t steps_per_epoch_;
  OptimiserOptions optimiser_;
  ScheduleOptions schedule_;
  RunState state_;
  Parameters<float> gradient_;
  RunEvaluation evaluation_;
  std::string divergence_;
};

Run::Run(const RunConfig& config, int threads) : Run(config, threads, initial_state(config)) {}
Run::Run(const RunConfig& config, int threads, RunState state)
    : implementation_(std::make_unique<Implementation>(config, threads, std::move(state))) {}
Run::~Run() = default;
Run::Run(Run&&) noexcept = default;

const RunConfig& Run::config() const { return implementation_->config(); }
int64_t Run::steps_per_epoch() const { return implementation_->steps_per_epoch(); }
bool Run::finished() const { return implementation_->finished(); }
const std::string& Run::divergence() const { return implementation_->divergence(); }
std::optional<EpochRecord> Run::advance_epoch(const std::atomic<bool>* stop) {
  return implementation_->advance_epoch(stop);
}
void Run::set_threads(int threads) { implementation_->set_threads(threads); }
const RunState& Run::state() const { return implementation_->state(); }
void Run::restore(RunState state) { implementation_->restore(std::move(state)); }
Model Run::model() const { return implementation_->model(); }

}  // namespace posattn

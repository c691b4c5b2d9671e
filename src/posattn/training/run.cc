#include "posattn/training/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "posattn/base/text.h"
#include "posattn/evaluation/measure.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/batches.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<Dataset> make_data(const RunConfig& config, const Task& task, Purpose purpose,
                               int64_t samples, int threads) {
  DatasetRequest request;
  request.task = &task;
  request.length = static_cast<int>(config.length);
  request.samples = samples;
  request.range = training_range(config.range, config.integers);
  request.seed = config.data_seed_used();
  request.purpose = purpose;
  request.threads = threads;
  if (config.variable_length) return make_variable_length(request);
  std::vector<Dataset> sets;
  sets.push_back(make_dataset(request));
  return sets;
}

OptimiserOptions optimiser_options(const RunConfig& config) {
  return {optimiser_kind_from(config.optimiser), config.beta1, config.beta2, config.epsilon,
          config.weight_decay};
}

ScheduleOptions schedule_options(const RunConfig& config, int64_t steps_per_epoch) {
  ScheduleOptions options;
  options.kind = schedule_kind_from(config.schedule);
  options.lr = config.lr;
  options.patience = config.plateau_patience;
  options.factor = config.plateau_factor;
  options.threshold = config.plateau_threshold;
  options.floor = config.plateau_floor;
  options.epsilon = config.plateau_epsilon;
  options.warmup_steps = config.warmup_steps;
  options.total_steps = config.epochs * steps_per_epoch;
  return options;
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

class Run::Implementation {
 public:
  Implementation(const RunConfig& config, int threads)
      : config_(config),
        task_(find_task(config.task)),
        spec_(model_spec(config)),
        threads_(std::max(1, threads)),
        network_(make_network()),
        train_(make_data(config, task_, Purpose::train_data, config.samples, threads_)),
        validation_(make_data(config, task_, Purpose::validation_data, config.validation_samples,
                              threads_)),
        steps_per_epoch_(EpochBatches::count(train_, config.batch)),
        optimiser_(optimiser_options(config)),
        schedule_(schedule_options(config, steps_per_epoch_)),
        state_(std::make_shared<const ParameterLayout>(spec_)),
        gradient_(state_.parameters.shared_layout()) {
    initialise(state_.parameters, config.weight_seed_used());
    state_.schedule = initial_schedule(schedule_);
    for (const Dataset& set : train_) masks_.push_back(loss_mask(task_, set.length));
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
    evaluate_when_due(record);
    state_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    record.seconds = state_.seconds;
    return record;
  }

  Model model() const {
    ModelOrigin origin;
    origin.task = config_.task;
    origin.length = static_cast<int>(config_.length);
    origin.variable_length = config_.variable_length;
    origin.range = config_.range;
    origin.integers = config_.integers;
    origin.notes = {{"architecture", config_.architecture},
                    {"seed", std::to_string(config_.seed)},
                    {"epoch", std::to_string(state_.epoch)}};
    return {spec_, state_.parameters, origin};
  }

 private:
  Network make_network() const {
    NetworkOptions options;
    options.path = network_path(config_);
    options.threads = threads_;
    return Network(spec_, options);
  }

  // The steps of one epoch; false when stopped or diverged (divergence_ then says how).
  bool train_epoch(const std::atomic<bool>* stop, EpochRecord& record) {
    EpochBatches batches(train_, config_.batch, config_.data_seed_used(), state_.epoch + 1);
    double summed_loss = 0;
    for (int64_t b = 0; b < batches.count(); ++b) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return false;
      const Batch batch = batches.gather(b);
      const double loss =
          network_.gradient(state_.parameters, batch, masks_[batches.set_of(b)], gradient_);
      if (!std::isfinite(loss)) {
        return diverge(fmt::format("the loss became {} in step {}", std::isnan(loss) ? NAN : loss,
                                   state_.optimiser.step + 1));
      }
      if (config_.clip > 0) clip_gradient(config_.clip, gradient_);
      record.lr = learning_rate(schedule_, state_.schedule, state_.optimiser.step);
      optimiser_step(optimiser_, record.lr, gradient_, state_.optimiser, state_.parameters);
      summed_loss += loss;
    }
    if (!all_finite(state_.parameters.values())) return diverge("a weight became infinite");
    // The square of a huge gradient overflows first, and its weight would never move again.
    if (!all_finite(state_.optimiser.second_moment.values())) {
      return diverge("the square of a gradient became infinite");
    }
    record.train_loss = summed_loss / static_cast<double>(batches.count());
    after_epoch(schedule_, summed_loss, state_.schedule);
    return true;
  }

  bool diverge(const std::string& how) {
    divergence_ = fmt::format("{} in epoch {}", how, state_.epoch + 1);
    return false;
  }

  bool due(int64_t every) const {
    return state_.epoch == config_.epochs || (every > 0 && state_.epoch % every == 0);
  }

  void evaluate_when_due(EpochRecord& record) {
    if (due(config_.validate_every)) {
      ErrorSums sums;
      for (std::size_t set = 0; set < validation_.size(); ++set) {
        sums += measure(network_, state_.parameters, validation_[set], masks_[set]);
      }
      const double loss = sums.mse();
      record.validation_loss = state_.validation_loss = loss;
      state_.best_validation_loss = std::min(loss, state_.best_validation_loss.value_or(loss));
    }
    if (due(config_.test_every)) {
      const Model current = model();
      EvaluationRequest request;
      request.model = &current;
      request.task = &task_;
      request.scales = parse_scales(config_.test_scales);
      request.samples = config_.test_samples;
      request.seed = config_.data_seed_used();
      request.purpose = Purpose::test_data;
      request.threads = threads_;
      record.tests = evaluate(request);
    }
  }

  RunConfig config_;
  const Task& task_;
  ModelSpec spec_;
  int threads_;
  Network network_;
  std::vector<Dataset> train_, validation_;  // one set per length, in the same order
  std::vector<std::vector<uint8_t>> masks_;  // of each set
  int64_t steps_per_epoch_;
  OptimiserOptions optimiser_;
  ScheduleOptions schedule_;
  RunState state_;
  Parameters<float> gradient_;
  std::string divergence_;
};

Run::Run(const RunConfig& config, int threads)
    : implementation_(std::make_unique<Implementation>(config, threads)) {}
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

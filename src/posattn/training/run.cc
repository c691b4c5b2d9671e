#include "posattn/training/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/base/json_fields.h"
#include "posattn/evaluation/measure.h"
#include "posattn/evaluation/measurement_json.h"
#include "posattn/training/batches.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

std::vector<Dataset> make_data(const RunConfig& config, Purpose purpose, int64_t samples,
                               int64_t sets_before, int threads) {
  DatasetRequest request;
  request.task = &task_of(config);
  request.length = static_cast<int>(config.length);
  request.shortest_length = static_cast<int>(config.shortest_length);
  request.samples = samples;
  request.sets_before = sets_before;
  request.range = training_range(config.range, config.integers);
  request.seed = config.data_seed_used();
  request.purpose = purpose;
  request.threads = threads;
  if (config.variable_length) return make_variable_length(request);
  std::vector<Dataset> sets;
  sets.push_back(make_dataset(request));
  return sets;
}

bool due_every(int64_t every, const RunConfig& config, int64_t epoch) {
  return epoch == config.epochs || (every > 0 && epoch % every == 0);
}

// A task that is not made of numbers in a range is not tested at scales, which have a default.
std::vector<AxisValues> tests_of(const RunConfig& config, const Task& task) {
  std::vector<AxisValues> tests;
  for (const EvaluationAxis* axis : evaluation_axes()) {
    const std::string values = get_field(config, axis->setting());
    if (values.empty() || (axis->name == "c" && !states_axis(task, "c"))) continue;
    tests.push_back({*axis, axis->parse(values, axis->setting())});
  }
  for (AxisValues& stated : parse_several_axes(config.test_axis, "test-axis")) {
    tests.push_back(std::move(stated));
  }
  return tests;
}

std::optional<Hints> hints_of(const RunConfig& config) {
  return config.hints.empty() ? std::nullopt : std::optional<Hints>(config);
}

}  // namespace

std::string to_json(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch},
               {"step", record.step},
               {"train_loss", json_number(record.train_loss)}};
  if (record.validation_loss) line["validation_loss"] = json_number(*record.validation_loss);
  const RowsAsJson written = rows_to_json(record.tests, true);
  if (!written.tests.empty()) line["tests"] = written.tests;
  if (!written.rows.empty()) line["rows"] = written.rows;
  line["lr"] = json_number(record.lr);
  line["seconds"] = record.seconds;
  return line.dump();
}

EpochRecord epoch_record_from_json(std::string_view line, const std::string& where) {
  const nlohmann::json json = parse_strict_json(line, where);
  const JsonFields fields(json, where);
  EpochRecord record;
  record.epoch = fields.integer("epoch");
  record.step = fields.integer("step");
  record.train_loss = fields.number("train_loss");
  record.lr = fields.number("lr");
  record.seconds = fields.number("seconds");
  if (fields.has("validation_loss")) record.validation_loss = fields.number("validation_loss");
  record.tests = rows_from_json(json, where);
  return record;
}

Run::Run(const RunConfig& config, int threads, RunState state)
    : config_(config),
      hints_(hints_of(config)),
      spec_(training_spec(config)),
      threads_(std::max(1, threads)),
      network_(spec_, {.path = network_path(config), .threads = threads_}),
      train_(training_data(config, state.epoch + 1, threads_)),
      train_epoch_(state.epoch + 1),
      steps_per_epoch_(EpochBatches::count(train_, config.batch)),
      optimiser_(optimiser_options(config)),
      schedule_(schedule_options(config, steps_per_epoch_)),
      state_(std::move(state)),
      gradient_(state_.parameters.shared_layout()),
      evaluation_(config, threads_) {
  const Task& task = task_of(config);
  for (const Dataset& set : train_) masks_.push_back(loss_mask(task, set.length));
  add_labels();
}

void Run::add_labels() {
  if (hints_) hints_->add_labels(train_.front(), threads_);
}

// The steps of one epoch; false when stopped or diverged (divergence() then says how).
bool Run::run_steps(const std::atomic<bool>* stop, EpochRecord& record) {
  if (config_.fresh && train_epoch_ != state_.epoch + 1) {
    train_epoch_ = state_.epoch + 1;
    train_ = training_data(config_, train_epoch_, threads_);
    add_labels();
  }
  EpochBatches batches(train_, config_.batch, config_.data_seed_used(), state_.epoch + 1);
  double summed_loss = 0;
  for (int64_t b = 0; b < batches.count(); ++b) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return false;
    Batch batch = batches.gather(b);
    batch.context = {.seed = config_.data_seed_used(),
                     .step = static_cast<uint32_t>(state_.optimiser.step),
                     .training = true};
    batch.hint_weight = config_.hint_weight;
    const double loss =
        network_.gradient(state_.parameters, batch, masks_[batches.set_of(b)], gradient_);
    if (!std::isfinite(loss)) return diverge(NotFinite::loss, loss);
    if (config_.clip > 0) clip_gradient(config_.clip, gradient_);
    if (config_.clip_relative > 0) {
      clip_gradient(relative_limit(optimiser_, config_.clip_relative, state_.optimiser), gradient_,
                    0);
    }
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

bool Run::diverge(NotFinite what, double loss) {
  divergence_ = divergence_message(what, loss, state_.optimiser.step + 1, state_.epoch + 1);
  return false;
}

std::optional<EpochRecord> Run::advance_epoch(const std::atomic<bool>* stop) {
  const Clock::time_point start = Clock::now();
  const RunState before = state_;
  EpochRecord record;
  try {
    if (!run_steps(stop, record)) {
      state_ = before;
      return std::nullopt;
    }
    record.epoch = ++state_.epoch;
    record.step = state_.optimiser.step;
    evaluation_.evaluate_when_due(network_, threads_, state_, record);
  } catch (...) {  // the epoch is repeated by who goes on
    state_ = before;
    throw;
  }
  state_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  record.seconds = state_.seconds;
  return record;
}

void Run::set_threads(int threads) {
  if (threads == threads_) return;
  threads_ = threads;
  network_ = Network(spec_, {.path = network_path(config_), .threads = threads});
}

void Run::restore(RunState state) {
  state_ = std::move(state);
  divergence_.clear();
}

std::vector<Dataset> training_data(const RunConfig& config, int64_t epoch, int threads) {
  return make_data(config, Purpose::train_data, config.samples, config.fresh ? epoch - 1 : 0,
                   threads);
}

std::vector<Dataset> validation_data(const RunConfig& config, int threads) {
  return make_data(config, Purpose::validation_data, config.validation_samples, 0, threads);
}

OptimiserOptions optimiser_options(const RunConfig& config) {
  return {optimiser_kind_from(config.optimiser),
          config.beta1,
          config.beta2,
          config.epsilon,
          config.weight_decay,
          decay_from(config.decay)};
}

ScheduleOptions schedule_options(const RunConfig& config, int64_t steps_per_epoch) {
  return {schedule_kind_from(config.schedule),
          config.lr,
          config.plateau_patience,
          config.plateau_factor,
          config.plateau_threshold,
          config.plateau_floor,
          config.plateau_epsilon,
          config.warmup_steps,
          config.epochs * steps_per_epoch};
}

RunState initial_state(const RunConfig& config) {
  RunState state(std::make_shared<const ParameterLayout>(training_spec(config)));
  if (config.from.empty() || !config.hints.empty()) {
    initialise(state.parameters, config.weight_seed_used(), initial_values_from(config.initial));
  }
  if (!config.from.empty()) {
    std::ranges::copy(start_parameters(config).values(), state.parameters.values().begin());
  }
  state.schedule = initial_schedule(schedule_options(config, 1));
  return state;
}

Model trained_model(const RunConfig& config, const RunState& state) {
  ModelOrigin origin;
  origin.task = config.task;
  origin.task_set = config.task_set;
  origin.length = static_cast<int>(config.length);
  origin.variable_length = config.variable_length;
  origin.shortest_length = static_cast<int>(config.shortest_length);
  origin.range = config.range;
  origin.integers = config.integers;
  origin.notes = {{"architecture", config.architecture},
                  {"seed", std::to_string(config.seed)},
                  {"epoch", std::to_string(state.epoch)}};
  if (!config.from.empty()) origin.notes["from"] = config.from_hash;
  Parameters<float> weights(model_spec(config));  // the maps of hints stay behind
  std::copy_n(state.parameters.values().begin(), weights.values().size(), weights.values().begin());
  return {model_spec(config), std::move(weights), origin};
}

std::string divergence_message(NotFinite what, double loss, int64_t step, int64_t epoch) {
  const std::string how =
      what == NotFinite::loss
          ? fmt::format("the loss became {} in step {}", std::isnan(loss) ? NAN : loss, step)
      : what == NotFinite::weight
          ? "a weight became infinite"
          : "the square of a gradient became infinite";  // its weight would never move again
  return fmt::format("{} in epoch {}", how, epoch);
}

EvaluationRequest test_request(const RunConfig& config, const Model& model) {
  EvaluationRequest request;
  request.model = &model;
  request.task = &task_of(config);
  request.samples = config.test_samples;
  request.seed = config.data_seed_used();
  request.purpose = Purpose::test_data;
  return request;
}

RunEvaluation::RunEvaluation(const RunConfig& config, int threads)
    : config_(config),
      task_(task_of(config)),
      hints_(hints_of(config)),
      validation_(validation_data(config, threads)) {
  for (const Dataset& set : validation_) masks_.push_back(loss_mask(task_, set.length));
}

bool RunEvaluation::validation_due(const RunConfig& config, int64_t epoch) {
  return due_every(config.validate_every, config, epoch);
}

bool RunEvaluation::tests_due(const RunConfig& config, int64_t epoch) {
  return due_every(config.test_every, config, epoch);
}

void RunEvaluation::evaluate_when_due(ForwardPass& network, int threads, RunState& state,
                                      EpochRecord& record, ForwardPass* testing) const {
  if (validation_due(config_, record.epoch) && !record.validation_loss) {
    MetricSum sum;
    for (std::size_t set = 0; set < validation_.size(); ++set) {
      sum += measure(training_loss(task_.loss()), network, state.parameters, validation_[set],
                     masks_[set]);
    }
    record.validation_loss = sum.mean();
  }
  if (const std::optional<double> loss = record.validation_loss) {
    state.validation_loss = loss;
    state.best_validation_loss = std::min(*loss, state.best_validation_loss.value_or(*loss));
  }
  if (tests_due(config_, record.epoch)) {
    const Model current = trained_model(config_, state);
    EvaluationRequest request = test_request(config_, current);
    request.threads = threads;
    request.network = testing;
    for (const AxisValues& tests : tests_of(config_, task_)) {
      request.axis = &tests.axis;
      request.values = tests.values;
      const std::vector<Measurement> rows = evaluate(request).rows;
      record.tests.insert(record.tests.end(), rows.begin(), rows.end());
      if (!hints_ || tests.axis.name != "c") continue;
      for (const double x : tests.values) {
        Dataset set = std::move(tests.axis.samples(request, x).sets.front());
        hints_->add_labels(set, threads);
        record.tests.push_back({Split::test, tests.axis.name, x, "hint_mse",
                                hints_->error(current.spec, state.parameters, set)});
      }
    }
  }
}

}  // namespace posattn

#include "posattn/training/run_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/evaluation/measure.h"
#include "posattn/training/start.h"

namespace posattn {
namespace {

std::vector<Dataset> make_data(const RunConfig& config, Purpose purpose, int64_t samples,
                               int64_t sets_before, int threads) {
  DatasetRequest request;
  request.task = &find_task(config.task);
  request.length = static_cast<int>(config.length);
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

}  // namespace

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

RunState initial_state(const RunConfig& config) {
  RunState state(std::make_shared<const ParameterLayout>(model_spec(config)));
  if (config.from.empty()) {
    initialise(state.parameters, config.weight_seed_used(), initial_values_from(config.initial));
  } else {
    state.parameters = start_parameters(config);
  }
  state.schedule = initial_schedule(schedule_options(config, 1));
  return state;
}

Model trained_model(const RunConfig& config, const RunState& state) {
  ModelOrigin origin;
  origin.task = config.task;
  origin.length = static_cast<int>(config.length);
  origin.variable_length = config.variable_length;
  origin.range = config.range;
  origin.integers = config.integers;
  origin.notes = {{"architecture", config.architecture},
                  {"seed", std::to_string(config.seed)},
                  {"epoch", std::to_string(state.epoch)}};
  if (!config.from.empty()) origin.notes["from"] = config.from_hash;
  return {model_spec(config), state.parameters, origin};
}

std::string divergence_message(NotFinite what, double loss, int64_t step, int64_t epoch) {
  std::string how;
  switch (what) {
    case NotFinite::loss:
      how = fmt::format("the loss became {} in step {}", std::isnan(loss) ? NAN : loss, step);
      break;
    case NotFinite::weight:
      how = "a weight became infinite";
      break;
    case NotFinite::squared_gradient:  // its weight would never move again
      how = "the square of a gradient became infinite";
      break;
  }
  return fmt::format("{} in epoch {}", how, epoch);
}

namespace {

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

}  // namespace

EvaluationRequest test_request(const RunConfig& config, const Model& model) {
  EvaluationRequest request;
  request.model = &model;
  request.task = &find_task(config.task);
  request.samples = config.test_samples;
  request.seed = config.data_seed_used();
  request.purpose = Purpose::test_data;
  return request;
}

RunEvaluation::RunEvaluation(const RunConfig& config, int threads)
    : config_(config),
      task_(find_task(config.task)),
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
    }
  }
}

}  // namespace posattn

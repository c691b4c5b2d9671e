#include "posattn/training/run_evaluation.h"

#include <algorithm>

#include "posattn/evaluation/measure.h"
#include "posattn/training/run_parts.h"

namespace posattn {
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

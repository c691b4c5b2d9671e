#include "posattn/evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/inference.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

namespace {

class Evaluator {
 public:
  explicit Evaluator(const EvaluationRequest& request) : request_(request) {
    if (request.network == nullptr) network_.emplace(request.model->spec, options());
    if (request.baselines) baselines_ = request.task->baselines();
  }

  void test_at(double x, Evaluation& evaluation) {
    const TestSamples tests = request_.axis->samples(request_, x);
    TestSums sums(request_.task->loss());
    NodeErrors errors;
    TestDetails details{.x = x, .mse_per_node = {}};
    for (const Dataset& set : tests.sets) {
      const std::vector<float> outputs =
          outputs_of(network_for(set, x), request_.model->parameters, set);
      const std::vector<uint8_t> mask = loss_mask(*request_.task, set.length);
      const Predictions predictions = predictions_of(set, outputs, mask);
      TestSums part(request_.task->loss());
      part.add(predictions);
      sums += part;
      errors += node_errors(predictions);
      if (tests.by_length) {
        details.per_length.push_back({set.length, set.samples, part.rows(axis(), x)});
      }
    }
    details.mse_per_node = errors.means();
    append(evaluation.rows, sums.rows(axis(), x));
    evaluation.details.push_back(std::move(details));
    measure_baselines(tests, x, evaluation);
  }

 private:
  // At a length that it was not trained at, a model is its weights in a network of that length.
  ForwardPass& network_for(const Dataset& set, double x) {
    const ModelSpec trained = request_.model->spec;
    const ModelSpec spec = request_.axis->model ? request_.axis->model(trained, x) : trained;
    const bool fits =
        set.shape.real_nodes == spec.real_nodes ||
        (request_.model->origin.variable_length && set.shape.real_nodes < spec.real_nodes);
    if (fits && spec != trained) {
      other_.emplace(spec, options());
      return *other_;
    }
    if (fits) return request_.network != nullptr ? *request_.network : *network_;
    other_.emplace(*at_length(spec, set.shape.real_nodes), options());
    return *other_;
  }
  NetworkOptions options() const {
    return {.path = path_for(*request_.model), .threads = request_.threads};
  }

  const std::string& axis() const { return request_.axis->name; }

  static void append(std::vector<Measurement>& all, const std::vector<Measurement>& rows) {
    all.insert(all.end(), rows.begin(), rows.end());
  }

  void measure_baselines(const TestSamples& tests, double x, Evaluation& evaluation) const {
    evaluation.baselines.resize(baselines_.size());
    for (size_t i = 0; i < baselines_.size(); ++i) {
      evaluation.baselines[i].name = baselines_[i].name;
      append(evaluation.baselines[i].rows,
             baseline_rows(baselines_[i], *request_.task, tests, axis(), x,
                           {request_.model->spec.heads, length_of(*request_.model)}));
    }
  }

  const EvaluationRequest& request_;
  std::vector<Baseline> baselines_;
  std::optional<Network> network_, other_;
};

// A task of texts is tested by what the model writes.
Evaluation evaluate_answers(const EvaluationRequest& request) {
  const TextGenerator generator(request.model->spec, request.model->parameters);
  Evaluation evaluation;
  for (const double x : request.values) {
    AnswerErrors errors;
    for (const Dataset& set : request.axis->samples(request, x).sets) {
      const AnswerErrors part =
          answer_errors(generator, *request.task->written_answers(), set, request.threads);
      errors.squared += part.squared;
      errors.unparsable += part.unparsable;
    }
    const auto add = [&](const char* metric, const MetricSum& sum) {
      evaluation.rows.push_back({Split::test, request.axis->name, x, metric, sum.mean()});
    };
    add("answer_mse", errors.squared);
    add("unparsable", errors.unparsable);
    evaluation.details.push_back({.x = x, .mse_per_node = {}});
  }
  return evaluation;
}

}  // namespace

void check_shapes(const Model& model, const Task& task) {
  const ModelSpec& spec = model.spec;
  const int length = length_of(model);
  const TaskShape shape = task.shape(length);
  if (!pairs_fit(spec, shape)) {
    throw Error(ExitCode::data,
                fmt::format("a model of pairs with {} numbers and {} classes", spec.pair_columns,
                            spec.pair_classes),
                fmt::format("{} numbers and {} classes, the pairs of task {}", shape.pair_columns,
                            shape.pair_classes, task.name()),
                "name the task that the model was trained on");
  }
  if (length >= task.shortest_length() && shape.real_nodes == spec.real_nodes &&
      shape.data_columns == spec.data_columns && shape.output_columns == spec.output_columns) {
    return;
  }
  throw Error(ExitCode::data,
              fmt::format("a model with {} nodes, {} numbers in and {} out per node",
                          spec.real_nodes, spec.data_columns, spec.output_columns),
              fmt::format("{} nodes, {} in and {} out for task {} at length {}", shape.real_nodes,
                          shape.data_columns, shape.output_columns, task.name(), length),
              "name the task and length that the model was trained on");
}

Evaluation evaluate(const EvaluationRequest& request) {
  check_shapes(*request.model, *request.task);
  if (request.task->written_answers() != nullptr) return evaluate_answers(request);
  Evaluator evaluator(request);
  Evaluation evaluation;
  for (const double x : request.values) evaluator.test_at(x, evaluation);
  return evaluation;
}

namespace {

// [samples, real_nodes, output_columns]
std::vector<float> outputs_of(const Baseline& baseline, const Dataset& set,
                              const ComparedModel& model) {
  const size_t targets = set.shape.target_count();
  std::vector<float> outputs(set.samples * targets);
  for (size_t i = 0; i < static_cast<size_t>(set.samples); ++i) {
    const Batch one = batch_of(set, static_cast<int64_t>(i), 1);
    baseline.predict(set.length,
                     {.values = one.inputs,
                      .tokens = one.tokens,
                      .pairs = one.pairs,
                      .pair_classes = one.pair_classes,
                      .model = model},
                     std::span(outputs).subspan(i * targets, targets));
  }
  return outputs;
}

}  // namespace

Baseline find_baseline(const Task& task, std::string_view name, std::vector<Baseline> more) {
  std::vector<Baseline> all = task.baselines();
  std::ranges::move(more, std::back_inserter(all));
  std::vector<std::string> known;
  for (Baseline& baseline : all) {
    if (baseline.name == name) return std::move(baseline);
    known.push_back(baseline.name);
  }
  throw unknown_name(ExitCode::usage, fmt::format("baseline of task {}", task.name()), name, known);
}

std::vector<Measurement> baseline_rows(const Baseline& baseline, const Task& task,
                                       const TestSamples& tests, const std::string& axis, double x,
                                       const ComparedModel& model) {
  TestSums sums(task.loss());
  for (const Dataset& set : tests.sets) {
    const std::vector<float> outputs = outputs_of(baseline, set, model);
    const std::vector<uint8_t> mask = loss_mask(task, set.length);
    sums.add(predictions_of(set, outputs, mask));
  }
  return sums.rows(axis, x);
}

}  // namespace posattn

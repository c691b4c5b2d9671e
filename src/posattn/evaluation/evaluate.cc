#include "posattn/evaluation/evaluate.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/measure.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

void check_shapes(const ModelSpec& spec, const Task& task, int length) {
  const TaskShape shape = task.shape(length);
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

ScaleResult evaluate_at(double scale, const EvaluationRequest& request, int length,
                        Network& network) {
  const ModelOrigin& origin = request.model->origin;
  const DatasetRequest data{.task = request.task,
                            .length = length,
                            .samples = request.samples,
                            .range = test_range(origin.range, scale, origin.integers),
                            .seed = request.seed,
                            .purpose = request.purpose,
                            .scale = scale,
                            .threads = request.threads};
  std::vector<Dataset> sets;
  if (origin.variable_length) {
    sets = make_variable_length(data);
  } else {
    sets.push_back(make_dataset(data));
  }
  ScaleResult result;
  result.c = scale;
  ErrorSums sums;
  for (const Dataset& set : sets) {
    const ErrorSums part =
        measure(network, request.model->parameters, set, loss_mask(*request.task, set.length));
    sums += part;
    if (origin.variable_length) {
      result.per_length.push_back({.length = set.length,
                                   .samples = set.samples,
                                   .mse = part.mse(),
                                   .accuracy = part.accuracy()});
    }
  }
  result.mse = sums.mse();
  result.mse_over_c2 = result.mse / (scale * scale);
  result.accuracy = sums.accuracy();
  result.mse_per_node = sums.mse_per_node();
  return result;
}

}  // namespace

std::vector<ScaleResult> evaluate(const EvaluationRequest& request) {
  const Model& model = *request.model;
  // A file without our metadata may not say its length; most tasks have one node per number.
  const int length = model.origin.length > 0 ? model.origin.length : model.spec.real_nodes;
  check_shapes(model.spec, *request.task, length);
  Network network(model.spec, {.path = path_for(model), .threads = request.threads});
  std::vector<ScaleResult> results;
  results.reserve(request.scales.size());
  for (const double scale : request.scales) {
    results.push_back(evaluate_at(scale, request, length, network));
  }
  return results;
}

}  // namespace posattn

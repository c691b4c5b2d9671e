#include "posattn/evaluation/predict.h"

#include <fmt/format.h>

#include <cassert>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// The number of real nodes of a row of `columns` numbers.
int real_nodes_for(const Model& model, int64_t columns) {
  const ModelSpec& spec = model.spec;
  const int64_t full = int64_t{1} * spec.real_nodes * spec.data_columns;
  if (columns == full) return spec.real_nodes;
  std::string expected = fmt::format("{} numbers per row", full);
  if (model.origin.variable_length) {
    const Task& task = find_task(model.origin.task);
    const int shortest = task.shortest_length();
    for (int length = shortest; length < model.origin.length; ++length) {
      const TaskShape shape = task.shape(length);
      if (columns == shape.input_count()) return shape.real_nodes;
    }
    expected = fmt::format("{} to {} numbers per row, those of a sample of task {}",
                           task.shape(shortest).input_count(), full, task.name());
  }
  throw Error(ExitCode::data, fmt::format("rows of {} numbers", columns), expected,
              "one row per sample, node after node");
}

}  // namespace

int64_t output_columns_for(const Model& model, int64_t columns) {
  return int64_t{1} * real_nodes_for(model, columns) * model.spec.output_columns;
}

std::vector<float> predict_rows(const Model& model, std::span<const float> rows, int64_t count,
                                int threads) {
  if (count == 0) return {};
  const auto columns = static_cast<int64_t>(rows.size()) / count;
  assert(columns * count == static_cast<int64_t>(rows.size()));
  std::vector<float> outputs(count * output_columns_for(model, columns));
  const Batch batch{.inputs = rows, .samples = count, .real_nodes = real_nodes_for(model, columns)};
  Network(model.spec, {.path = path_for(model), .threads = threads})
      .forward(model.parameters, batch, outputs);
  return outputs;
}

}  // namespace posattn

#include "posattn/evaluation/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "posattn/base/error.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

void check_tokens(const ModelSpec& spec, const Table& table, std::string_view name) {
  const bool may_hold_numbers = spec.data_columns > 0;
  const int64_t nodes = table.columns / (1 + spec.data_columns);
  for (int64_t i = 0; i < static_cast<int64_t>(table.whole.size()); ++i) {
    const int32_t token = table.whole[i];
    if (token < spec.vocabulary && (token >= 0 || may_hold_numbers)) continue;
    throw Error(ExitCode::data,
                fmt::format("{}: token {} in row {}, column {}", name, token, i / nodes + 1,
                            i % nodes * (1 + spec.data_columns) + 1),
                fmt::format("0 to {}{}", spec.vocabulary - 1,
                            may_hold_numbers ? ", or -1 for a node that holds numbers" : ""));
  }
}

}  // namespace

RowPattern row_pattern(const ModelSpec& spec) {
  return {.whole = spec.vocabulary > 0 ? 1 : 0, .real = spec.data_columns};
}

RowPattern pair_pattern(const ModelSpec& spec) {
  if (!spec.has_pairs()) {
    throw Error(ExitCode::data, "pairs of nodes for a model that reads none",
                "samples without pairs", "leave --pairs out");
  }
  return {.whole = spec.pair_classes > 0 ? 1 : 0, .real = spec.pair_columns};
}

int real_nodes_for(const Model& model, int64_t columns, std::string_view name) {
  const ModelSpec& spec = model.spec;
  const RowPattern pattern = row_pattern(spec);
  const int64_t columns_of_node = pattern.whole + pattern.real;
  const int64_t full = spec.real_nodes * columns_of_node;
  if (columns == full) return spec.real_nodes;
  std::string expected = fmt::format("{} numbers per row", full);
  if (model.origin.variable_length) {
    const Task& task = task_of(model.origin, "the model");
    const int shortest = std::max(task.shortest_length(), model.origin.shortest_length);
    for (int length = shortest; length < model.origin.length; ++length) {
      const int nodes = task.shape(length).real_nodes;
      if (columns == nodes * columns_of_node) return nodes;
    }
    expected = fmt::format("{} to {} numbers per row, those of a sample of task {}",
                           task.shape(shortest).real_nodes * columns_of_node, full, task.name());
  }
  throw Error(ExitCode::data,
              fmt::format("{}{}rows of {} numbers", name, name.empty() ? "" : ": ", columns),
              expected,
              pattern.whole > 0 && pattern.real > 0
                  ? "one row per sample, node after node: its token or -1, then its numbers"
                  : "one row per sample, node after node");
}

Batch samples_of(const Model& model, const Table& table, std::string_view name) {
  return samples_of(model, table, nullptr, name);
}

Batch samples_of(const Model& model, const Table& table, const Table* pairs,
                 std::string_view name) {
  const ModelSpec& spec = model.spec;
  const int real_nodes = real_nodes_for(model, table.columns, name);
  check_tokens(spec, table, name);
  Batch batch{.inputs = table.values,
              .samples = table.rows,
              .real_nodes = real_nodes,
              .tokens = table.whole};
  if (pairs == nullptr && spec.has_pairs()) {
    throw Error(ExitCode::data, fmt::format("{}: samples without pairs of nodes", name),
                "pairs, which the model's attention reads", "add --pairs FILE");
  }
  if (pairs == nullptr) return batch;
  const RowPattern pattern = pair_pattern(spec);
  const int64_t columns = int64_t{1} * real_nodes * real_nodes * (pattern.whole + pattern.real);
  if (pairs->rows != table.rows || pairs->columns != columns) {
    throw Error(
        ExitCode::data, fmt::format("{} x {} numbers of pairs", pairs->rows, pairs->columns),
        fmt::format("{} x {}: a row for each sample of {} nodes", table.rows, columns, real_nodes),
        "pair after pair: its class, then its numbers");
  }
  batch.pairs = pairs->values;
  batch.pair_classes = pairs->whole;
  check_batch(spec, batch);
  return batch;
}

std::vector<float> predict(const Model& model, const Batch& samples, int threads) {
  std::vector<float> outputs(samples.samples * samples.real_nodes * model.spec.output_columns);
  if (samples.samples == 0) return outputs;
  Network(model.spec, {.path = path_for(model), .threads = threads})
      .forward(model.parameters, samples, outputs);
  return outputs;
}

std::vector<float> predict_rows(const Model& model, std::span<const float> rows, int64_t count,
                                int threads) {
  if (count == 0) return {};
  const auto columns = static_cast<int64_t>(rows.size()) / count;
  assert(columns * count == static_cast<int64_t>(rows.size()));
  return predict(model,
                 {.inputs = rows, .samples = count, .real_nodes = real_nodes_for(model, columns)},
                 threads);
}

std::vector<float> read_outputs(const ModelSpec& spec, std::vector<float> outputs, int real_nodes) {
  const int64_t all = int64_t{1} * real_nodes * spec.output_columns;
  const int64_t read = int64_t{1} * spec.nodes_read(real_nodes) * spec.output_columns;
  const int64_t first = int64_t{1} * spec.first_read(real_nodes) * spec.output_columns;
  if (read == all) return outputs;
  const int64_t samples = static_cast<int64_t>(outputs.size()) / all;
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::copy_n(outputs.begin() + sample * all + first, read, outputs.begin() + sample * read);
  }
  outputs.resize(samples * read);
  return outputs;
}

std::vector<int32_t> decided_classes(std::span<const float> scores, int classes) {
  std::vector<int32_t> decided;
  decided.reserve(scores.size() / classes);
  for (size_t at = 0; at < scores.size(); at += classes) {
    decided.push_back(decided_class(scores.subspan(at, classes)));
  }
  return decided;
}

std::vector<float> exact_answer(const Model& model, const Batch& sample, size_t outputs) {
  const Task* task = task_of(model.origin);
  if (task == nullptr || model.spec.vocabulary > 0 || model.spec.loss != Loss::squared_error ||
      task->shape(length_of(model)).has_pairs()) {
    return {};
  }
  for (int n = task->shortest_length(); n <= length_of(model); ++n) {
    const TaskShape shape = task->shape(n);
    if (shape.input_count() != static_cast<int64_t>(sample.inputs.size()) ||
        shape.target_count() != static_cast<int64_t>(outputs)) {
      continue;
    }
    std::vector<float> answer(outputs);
    task->solve(n, sample.inputs, answer);
    return answer;
  }
  return {};
}

}  // namespace posattn

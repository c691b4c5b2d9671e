#include "posattn/bounds/value_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/lettered.h"

namespace posattn::bounds {
namespace {

Parameters<double> checked_parameters(const Model& model) {
  if (const std::string reason = matrix_broken_by(model.spec); !reason.empty()) {
    throw Error(ExitCode::configuration, "a model that " + reason,
                "outputs that are linear in the numbers", "as --architecture two-streams-linear");
  }
  return to_double(model.parameters);
}

ValueMatrix matrix_of(const ModelSpec& spec, const Parameters<double>& parameters,
                      const Batch& sample) {
  ValueMatrix matrix;
  const auto size = static_cast<int>(sample.inputs.size());
  for (int i = 0; i < size; ++i) {
    if (sample.inputs[i] != 0) matrix.inputs.push_back(i);
  }
  const auto columns = static_cast<int64_t>(matrix.inputs.size());
  if (columns == 0) {
    throw Error(ExitCode::data, "a sample whose numbers are all 0", "a number at some node");
  }
  // The sample once for each of its numbers, which alone is 1.
  std::vector<double> inputs(columns * size), pairs;
  std::vector<int32_t> tokens, pair_classes;
  for (int64_t k = 0; k < columns; ++k) {
    inputs[k * size + matrix.inputs[k]] = 1;
    tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
    pairs.insert(pairs.end(), sample.pairs.begin(), sample.pairs.end());
    pair_classes.insert(pair_classes.end(), sample.pair_classes.begin(), sample.pair_classes.end());
  }
  const std::vector<double> outputs = reference_forward(spec, parameters,
                                                        {.inputs = inputs,
                                                         .samples = columns,
                                                         .real_nodes = sample.real_nodes,
                                                         .tokens = tokens,
                                                         .pairs = pairs,
                                                         .pair_classes = pair_classes});
  const int64_t all = int64_t{1} * sample.real_nodes * spec.output_columns;
  const int64_t first = int64_t{1} * spec.first_read(sample.real_nodes) * spec.output_columns;
  const int64_t rows = int64_t{1} * spec.nodes_read(sample.real_nodes) * spec.output_columns;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k) matrix.entries.push_back(outputs[k * all + first + i]);
  }
  return matrix;
}

}  // namespace

std::string matrix_broken_by(const ModelSpec& spec) {
  if (!spec.two_streams()) return "has one stream";
  if (spec.value_mlp_width > 0) return "has an MLP of values";
  if (spec.scores_read_values) return "has scores that read values";
  if (spec.symbols_read_values) return "has symbols that read values";
  if (spec.loss != Loss::squared_error) return "answers with classes";
  return {};
}

std::vector<double> ValueMatrix::rounded() const {
  std::vector<double> result(entries);
  for (double& entry : result) entry = entry > 0.5 ? 1 : 0;
  return result;
}

double ValueMatrix::distance() const {
  const std::vector<double> nearest = rounded();
  double largest = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    largest = std::max(largest, std::abs(entries[i] - nearest[i]));
  }
  return largest;
}

double ValueMatrix::row_distance() const {
  const std::vector<double> nearest = rounded();
  double largest = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    double sum = 0;
    for (size_t i = row * inputs.size(); i < (row + 1) * inputs.size(); ++i) {
      sum += std::abs(entries[i] - nearest[i]);
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

ValueMatrix value_matrix(const Model& model, const Batch& one_sample) {
  return matrix_of(model.spec, checked_parameters(model), one_sample);
}

std::vector<double> rounded_answer(const ValueMatrix& matrix, const Batch& one_sample) {
  const std::vector<double> nearest = matrix.rounded();
  const size_t columns = matrix.inputs.size();
  std::vector<double> answer(matrix.rows());
  for (size_t i = 0; i < nearest.size(); ++i) {
    answer[i / columns] += nearest[i] * one_sample.inputs[matrix.inputs[i % columns]];
  }
  return answer;
}

MatrixShare matrix_share(const MatrixRequest& request) {
  const Model& model = *request.model;
  const ModelSpec& spec = model.spec;
  const Parameters<double> parameters = checked_parameters(model);
  check_shapes(model, *request.task);
  const int length = length_of(model);
  const int64_t samples = request.all ? request.task->symbol_inputs(length) : request.samples;
  if (samples == 0) {
    throw Error(ExitCode::configuration,
                fmt::format("all symbol inputs of {} at length {}", request.task->name(), length),
                fmt::format("pointer, recall or sort-by-key with at most {} of them", most_listed),
                "draw some by --samples");
  }
  const Dataset set =
      make_dataset({.task = request.task,
                    .length = length,
                    .samples = samples,
                    .range = training_range(model.origin.range, model.origin.integers),
                    .seed = request.seed,
                    .purpose = Purpose::evaluation_data,
                    .threads = request.threads,
                    .listed = request.all});
  const std::vector<uint8_t> counts = loss_mask(*request.task, set.length);
  const int64_t out = int64_t{1} * set.shape.real_nodes * spec.output_columns;
  const int64_t first = int64_t{1} * spec.first_read(set.shape.real_nodes) * spec.output_columns;
  struct Found {
    bool right = true;
    double distance = 0, row_distance = 0;
  };
  std::vector<Found> found(samples);
  parallel_for(samples, request.threads, [&](int64_t s) {
    const auto part = [&](const auto& all) {
      const size_t each = all.size() / samples;
      return std::span(all.data() + s * each, each);
    };
    const Batch sample{.inputs = part(set.inputs),
                       .samples = 1,
                       .real_nodes = set.shape.real_nodes,
                       .tokens = part(set.tokens),
                       .pairs = part(set.pairs),
                       .pair_classes = part(set.pair_classes)};
    const ValueMatrix matrix = matrix_of(spec, parameters, sample);
    const std::vector<double> answer = rounded_answer(matrix, sample);
    for (size_t i = 0; i < answer.size(); ++i) {
      const int64_t at = first + static_cast<int64_t>(i);
      const bool same = static_cast<float>(answer[i]) == set.targets.data()[s * out + at];
      found[s].right = found[s].right && (same || counts[at] == 0);
    }
    found[s].distance = matrix.distance();
    found[s].row_distance = matrix.row_distance();
  });
  MatrixShare share{.samples = samples, .confidence = request.all ? 1 : request.confidence};
  for (const Found& one : found) {
    share.right += one.right ? 1 : 0;
    share.distance = std::max(share.distance, one.distance);
    share.row_distance = std::max(share.row_distance, one.row_distance);
  }
  const auto n = static_cast<double>(share.samples);
  share.at_least = static_cast<double>(share.right) / n;
  if (request.all) return share;
  share.at_least = 1 - kl_inverse(static_cast<double>(share.samples - share.right) / n,
                                  -std::log1p(-request.confidence) / n);
  return share;
}

}  // namespace posattn::bounds

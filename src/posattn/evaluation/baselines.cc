#include "posattn/evaluation/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "posattn/base/error.h"
#include "posattn/evaluation/measure.h"

namespace posattn {
namespace {

// [samples, real_nodes, output_columns]
std::vector<float> outputs_of(const Baseline& baseline, const Dataset& set) {
  const size_t inputs = set.shape.input_count(), targets = set.shape.target_count();
  const size_t tokens = set.shape.vocabulary > 0 ? set.shape.real_nodes : 0;
  std::vector<float> outputs(set.samples * targets);
  for (size_t i = 0; i < static_cast<size_t>(set.samples); ++i) {
    baseline.predict(set.length,
                     {.values = std::span(set.inputs).subspan(i * inputs, inputs),
                      .tokens = std::span(set.tokens).subspan(i * tokens, tokens)},
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
                                       const TestSamples& tests, const std::string& axis,
                                       double x) {
  TestSums sums(task.loss());
  for (const Dataset& set : tests.sets) {
    const std::vector<float> outputs = outputs_of(baseline, set);
    const std::vector<uint8_t> mask = loss_mask(task, set.length);
    sums.add(predictions_of(set, outputs, mask));
  }
  return sums.rows(axis, x);
}

}  // namespace posattn

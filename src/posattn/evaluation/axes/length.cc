// Samples of other lengths than the training samples, with values in the training range.
#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

std::vector<double> parse(std::string_view text, std::string_view flag) {
  const std::vector<int> lengths = parse_lengths(text, flag);
  return {lengths.begin(), lengths.end()};
}

TestSamples samples_of_length(const EvaluationRequest& request, double x) {
  const Model& model = *request.model;
  const int length = static_cast<int>(x);
  check_test_length(model.spec, *request.task, {length_of(model), model.origin.variable_length},
                    length);
  TestSamples tests;
  tests.sets.push_back(
      make_dataset({.task = request.task,
                    .length = length,
                    .samples = request.samples,
                    .range = test_range(model.origin.range, 1, model.origin.integers),
                    .seed = request.seed,
                    .purpose = request.purpose,
                    .scale = 1,
                    .threads = request.threads}));
  return tests;
}

}  // namespace

bool evaluates_at_length(const ModelSpec& spec, int real_nodes) {
  return at_length(spec, real_nodes).has_value();
}

void check_test_length(const ModelSpec& spec, const Task& task, TrainedLengths trained,
                       int length) {
  if (length < task.shortest_length()) {
    throw Error(ExitCode::data, fmt::format("length {} for task {}", length, task.name()),
                fmt::format("at least {}", task.shortest_length()));
  }
  if (length == trained.longest || (trained.and_below && length < trained.longest)) return;
  if (evaluates_at_length(spec, task.shape(length).real_nodes)) return;
  throw Error(
      ExitCode::data,
      fmt::format("a model of length {} cannot be tested at length {}", trained.longest, length),
      trained.and_below ? fmt::format("lengths up to {}", trained.longest)
                        : fmt::format("length {} alone", trained.longest),
      "its attention knows only the positions that it was trained with");
}

extern const EvaluationAxis length_axis;
const EvaluationAxis length_axis{.name = "length",
                                 .words = "length n of the test samples",
                                 .plural = "lengths",
                                 .help = "Test at these lengths instead, as 8,16,32",
                                 .logarithmic = true,
                                 .whole = true,
                                 .parse = parse,
                                 .samples = samples_of_length};

}  // namespace posattn

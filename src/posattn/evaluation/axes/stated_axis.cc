// Axes that a task states itself: the axis is a name, and the task's make_sample reads it and x.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

TestSamples samples_along_axis(const EvaluationRequest& request, double x) {
  const ModelOrigin& origin = request.model->origin;
  return stated_samples(request, x, training_range(origin.range, origin.integers));
}

}  // namespace

EvaluationAxis axis_named(std::string_view name) {
  for (const EvaluationAxis* axis : evaluation_axes()) {
    if (axis->name == name) return *axis;
  }
  EvaluationAxis axis{.name = std::string(name),
                      .words = std::string(name),
                      .plural = "tests",
                      .help = {},
                      .stated = true,
                      .parse = parse_numbers,
                      .samples = samples_along_axis};
  for (const Task* task : tasks()) {
    for (const TestAxis& stated : task->test_axes()) {
      if (stated.name != name) continue;
      if (!stated.words.empty()) axis.words = stated.words;
      axis.whole = stated.whole;
      return axis;
    }
  }
  return axis;
}

AxisValues parse_axis_values(std::string_view text, std::string_view flag) {
  const size_t sign = text.find('=');
  if (sign == 0 || sign == std::string_view::npos) {
    throw Error(ExitCode::usage, fmt::format("{}: '{}'", flag, text),
                "an axis and its values, as share=0.1,0.5");
  }
  AxisValues result{.axis = axis_named(text.substr(0, sign)), .values = {}};
  result.values = result.axis.parse(text.substr(sign + 1), flag);
  return result;
}

std::vector<AxisValues> parse_several_axes(std::string_view text, std::string_view flag) {
  std::vector<AxisValues> axes;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    AxisValues parsed = parse_axis_values(text.substr(at, end - at), flag);
    for (const AxisValues& other : axes) {
      if (other.axis.name != parsed.axis.name) continue;
      throw Error(ExitCode::usage,
                  fmt::format("{}: axis '{}' is given twice", flag, other.axis.name),
                  "each axis once, with all its values");
    }
    axes.push_back(std::move(parsed));
    at = end + 1;
  }
  return axes;
}

bool states_axis(const Task& task, std::string_view axis) {
  return std::ranges::any_of(task.test_axes(),
                             [&](const TestAxis& stated) { return stated.name == axis; });
}

void check_states_axis(const Task& task, std::string_view axis) {
  if (states_axis(task, axis)) return;
  std::vector<std::string> stated;
  for (const TestAxis& one : task.test_axes()) stated.push_back(one.name);
  throw Error(ExitCode::data,
              fmt::format("task {} cannot be tested along an axis '{}'", task.name(), axis),
              stated.empty() ? "a task with axes of its own"
                             : fmt::format("one of its own: {}", fmt::join(stated, ", ")),
              stated.empty() ? "" : fmt::format("as --axis {}=1,2", stated.front()));
}

TestSamples stated_samples(const EvaluationRequest& request, double x, const ValueRange& range) {
  check_states_axis(*request.task, request.axis->name);
  return samples_on_axis(request, x, range);
}

TestSamples samples_on_axis(const EvaluationRequest& request, double x, const ValueRange& range) {
  const DatasetRequest data{.task = request.task,
                            .length = length_of(*request.model),
                            .shortest_length = request.model->origin.shortest_length,
                            .samples = request.samples,
                            .range = range,
                            .seed = request.seed,
                            .purpose = request.purpose,
                            .scale = x,
                            .threads = request.threads,
                            .axis = request.axis->name};
  TestSamples tests{.sets = {}, .by_length = request.model->origin.variable_length};
  if (tests.by_length) {
    tests.sets = make_variable_length(data);
  } else {
    tests.sets.push_back(make_dataset(data));
  }
  return tests;
}

}  // namespace posattn

// The paper's way of testing: values in [-range c, range c], where range is what the model was
// trained on (for c > 1 nothing that lies inside the training range). A model trained on several
// lengths gets all of them in equal shares.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

void check_task(const Task& task) {
  std::vector<std::string> known;
  for (const TestAxis& axis : task.test_axes()) known.push_back(axis.name);
  if (std::ranges::find(known, "c") != known.end()) return;
  throw Error(ExitCode::data, fmt::format("task {} cannot be tested at scales", task.name()),
              fmt::format("one of its own axes: {}", fmt::join(known, ", ")));
}

TestSamples samples(const EvaluationRequest& request, double c) {
  check_task(*request.task);
  const ModelOrigin& origin = request.model->origin;
  const DatasetRequest data{.task = request.task,
                            .length = length_of(*request.model),
                            .samples = request.samples,
                            .range = test_range(origin.range, c, origin.integers),
                            .seed = request.seed,
                            .purpose = request.purpose,
                            .scale = c,
                            .threads = request.threads};
  TestSamples tests{.sets = {}, .by_length = origin.variable_length};
  if (origin.variable_length) {
    tests.sets = make_variable_length(data);
  } else {
    tests.sets.push_back(make_dataset(data));
  }
  return tests;
}

}  // namespace

extern const EvaluationAxis value_range_axis;
const EvaluationAxis value_range_axis{.name = "c",
                                      .words = "scale c of the test values",
                                      .plural = "scales",
                                      .help = "Scales c, as 1..10,1000",
                                      .logarithmic = false,
                                      .parse = parse_scales,
                                      .samples = samples};

}  // namespace posattn

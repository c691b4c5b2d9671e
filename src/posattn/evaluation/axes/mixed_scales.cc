// Numbers of different magnitudes in one sample, with the task's exact answer:
//   x_i = v_i 10^u_i, v as in training, u_i uniform in [-x, x]
// A model that divides the scale of the sample out has no more than its largest numbers then.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

TestSamples samples_of_mixed_scales(const EvaluationRequest& request, double x) {
  const ModelOrigin& origin = request.model->origin;
  const ValueRange range = mixed_range(origin.range, x, origin.integers);
  check_mixed_scales(*request.task, length_of(*request.model));
  return samples_on_axis(request, x, range);
}

}  // namespace

void check_mixed_scales(const Task& task, int length) {
  DatasetRequest request{.task = &task, .length = length, .samples = 4, .range = {}};
  const Dataset plain = make_dataset(request);
  request.range.decades = 1;
  if (!std::ranges::equal(plain.inputs, make_dataset(request).inputs)) return;
  throw Error(ExitCode::data,
              fmt::format("task {} cannot be tested with mixed scales", task.name()),
              "a task whose numbers are drawn from a range, by the library's rule");
}

extern const EvaluationAxis mixed_scales_axis;
const EvaluationAxis mixed_scales_axis{
    .name = "mixed-scales",
    .words = "powers of ten x: each number times 10^u, u in [-x, x]",
    .plural = "mixed-scales",
    .help = "Multiply each number by 10^u, u in [-x, x], for these x, as 0,0.5,1",
    .from_zero = true,
    .parse = parse_numbers,
    .samples = samples_of_mixed_scales};

}  // namespace posattn

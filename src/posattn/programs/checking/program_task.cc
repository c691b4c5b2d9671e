#include "posattn/programs/checking/program_task.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace posattn {

TaskShape ProgramTask::shape(int /*length*/) const { return {.real_nodes = program_.processors}; }

void ProgramTask::draw(RandomStream& random, const ValueRange& range, int /*length*/,
                       std::span<float> input) const {
  const WordType& type = program_.words[program_.input].type;
  if (type.is_real()) return draw_values(random, range, input);
  const auto low = static_cast<double>(type.low), high = static_cast<double>(type.high);
  for (float& value : input) {
    const double drawn = low + std::floor(random.uniform() * (high - low + 1));
    value = static_cast<float>(std::min(drawn, high));
  }
}

void ProgramTask::solve(int /*length*/, std::span<const float> input,
                        std::span<float> target) const {
  const std::vector<double> exact(input.begin(), input.end());
  const std::vector<double> outputs = run_static<double>(program_, exact, 1);
  std::ranges::transform(outputs, target.begin(), [](double x) { return static_cast<float>(x); });
}

}  // namespace posattn

#include "posattn/programs/checking/program_task.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace posattn {

TaskShape ProgramTask::shape(int /*length*/) const {
  return {.real_nodes = program_.processors,
          .data_columns = static_cast<int>(program_.inputs.size()),
          .output_columns = static_cast<int>(program_.outputs.size())};
}

void ProgramTask::draw(RandomStream& random, const ValueRange& range, int /*length*/,
                       std::span<float> input) const {
  const size_t columns = program_.inputs.size();
  std::vector<float> reals(program_.processors);
  for (size_t c = 0; c < columns; ++c) {
    const WordType& type = program_.words[program_.inputs[c]].type;
    if (type.is_real()) draw_values(random, range, reals);
    const auto low = static_cast<double>(type.low), high = static_cast<double>(type.high);
    for (int i = 0; i < program_.processors; ++i) {
      float& number = input[i * columns + c];
      if (type.is_real()) {
        number = reals[i];
      } else {
        const double drawn = low + std::floor(random.uniform() * (high - low + 1));
        number = static_cast<float>(std::min(drawn, high));
      }
    }
  }
}

void ProgramTask::solve(int /*length*/, std::span<const float> input,
                        std::span<float> target) const {
  const std::vector<double> exact(input.begin(), input.end());
  const std::vector<double> outputs = run_static<double>(program_, exact, 1);
  std::ranges::transform(outputs, target.begin(), [](double x) { return static_cast<float>(x); });
}

}  // namespace posattn

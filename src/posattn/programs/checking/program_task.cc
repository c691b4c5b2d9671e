#include "posattn/programs/checking/program_task.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace posattn {

TaskShape ProgramTask::shape(int /*length*/) const {
  const std::vector<int>& inputs = routed_ ? routed_->program.inputs : program_.inputs;
  return {.real_nodes = program_.processors,
          .data_columns = static_cast<int>(inputs.size()),
          .output_columns = static_cast<int>(program_.outputs.size())};
}

void ProgramTask::draw(RandomStream& random, const ValueRange& range, int /*length*/,
                       std::span<float> input) const {
  const size_t columns = program_.inputs.size();
  const auto n = static_cast<size_t>(program_.processors);
  std::vector<float> own(n * columns), reals(n);
  const auto write = [&](size_t first, size_t count, const auto& numbers) {
    for (size_t k = 0; k < n * count; ++k) {
      own[k / count * columns + first + k % count] = static_cast<float>(numbers[k]);
    }
  };
  for (size_t c = 0; c < columns;) {
    const WordType& type = program_.words[program_.inputs[c]].type;
    const auto promised =
        std::ranges::find(program_.promises, static_cast<int>(c), &PromisedInputs::first);
    if (promised != program_.promises.end()) {
      write(c, promised->count,
            drawn(promised->promise, type, program_.processors, promised->count, random));
      c += promised->count;
      continue;
    }
    if (type.is_real()) {
      draw_values(random, range, reals);
    } else {
      const auto low = static_cast<double>(type.low), high = static_cast<double>(type.high);
      for (float& x : reals) {
        const double number = low + std::floor(random.uniform() * (high - low + 1));
        x = static_cast<float>(std::min(number, high));
      }
    }
    write(c++, 1, reals);
  }
  if (routed_) own = routed_inputs<float>(program_, *routed_, own, 1);
  std::ranges::copy(own, input.begin());
}

void ProgramTask::solve(int /*length*/, std::span<const float> input,
                        std::span<float> target) const {
  const size_t columns = program_.inputs.size();
  const size_t given = input.size() / program_.processors;  // of a routed program more
  std::vector<double> exact;
  for (size_t k = 0; k < input.size(); ++k) {
    if (k % given < columns) exact.push_back(input[k]);
  }
  const std::vector<double> outputs = run_static<double>(program_, exact, 1);
  std::ranges::transform(outputs, target.begin(), [](double x) { return static_cast<float>(x); });
}

}  // namespace posattn

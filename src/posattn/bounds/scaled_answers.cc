#include "posattn/bounds/scaled_answers.h"

namespace posattn::bounds {

bool answers_scale(const Task& task, const Dataset& set) {
  if (task.loss() != Loss::squared_error || !set.tokens.empty()) return false;
  const auto in = static_cast<size_t>(set.shape.input_count());
  const auto out = static_cast<size_t>(set.shape.target_count());
  std::vector<float> scaled(in), answer(out);
  for (const float c : {0.125f, 2.0f, 1024.0f}) {
    for (int64_t sample = 0; sample < set.samples; ++sample) {
      for (size_t i = 0; i < in; ++i) scaled[i] = c * set.inputs.data()[sample * in + i];
      task.solve(set.length, scaled, answer);
      for (size_t i = 0; i < out; ++i) {
        if (answer[i] != c * set.targets.data()[sample * out + i]) return false;
      }
    }
  }
  return true;
}

}  // namespace posattn::bounds

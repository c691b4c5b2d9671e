// y_i = max(x_0, ..., x_i).
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class CumulativeMax final : public Task {
 public:
  std::string_view name() const override { return "cumulative-max"; }
  std::string_view description() const override { return "maximum of each prefix"; }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    float best = input[0];
    for (int i = 0; i < length; ++i) {
      best = std::max(best, input[i]);
      target[i] = best;
    }
  }
};

}  // namespace

const Task& cumulative_max_task() {
  static const CumulativeMax task;
  return task;
}

}  // namespace posattn

// y_i = min(x_0, ..., x_i).
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class CumulativeMin final : public Task {
 public:
  std::string_view name() const override { return "cumulative-min"; }
  std::string_view description() const override { return "minimum of each prefix"; }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    float best = input[0];
    for (int i = 0; i < length; ++i) {
      best = std::min(best, input[i]);
      target[i] = best;
    }
  }
};

}  // namespace

const Task& cumulative_min_task() {
  static const CumulativeMin task;
  return task;
}

}  // namespace posattn

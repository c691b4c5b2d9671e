// Two lists of n values, x_0 ... x_{n-1} and x_n ... x_{2n-1}, on 2n nodes:
// y_i = y_{n+i} = min over j <= i of x_j + x_{n+j}.
#include <algorithm>
#include <limits>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class MinSum final : public Task {
 public:
  std::string_view name() const override { return "min-sum"; }
  std::string_view description() const override {
    return "running minimum of the sums of two lists (2n values)";
  }

  TaskShape shape(int length) const override { return {.real_nodes = 2 * length}; }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < length; ++i) {
      best = std::min(best, static_cast<double>(input[i]) + input[length + i]);
      target[i] = target[length + i] = static_cast<float>(best);
    }
  }
};

}  // namespace

const Task& min_sum_task() {
  static const MinSum task;
  return task;
}

}  // namespace posattn

// y_i = x_0 + ... + x_i.
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class CumulativeSum final : public Task {
 public:
  std::string_view name() const override { return "cumulative-sum"; }
  std::string_view description() const override { return "sum of each prefix"; }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    double sum = 0;
    for (int i = 0; i < length; ++i) {
      sum += input[i];
      target[i] = static_cast<float>(sum);
    }
  }
};

}  // namespace

const Task& cumulative_sum_task() {
  static const CumulativeSum task;
  return task;
}

}  // namespace posattn

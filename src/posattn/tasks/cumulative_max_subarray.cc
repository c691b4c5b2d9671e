// y_i = the largest sum x_j + ... + x_k over all 0 <= j <= k <= i (Kadane's recurrence).
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class CumulativeMaxSubarray final : public Task {
 public:
  std::string_view name() const override { return "cumulative-max-subarray"; }
  std::string_view description() const override {
    return "largest sum of a non-empty contiguous part of each prefix";
  }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    double ending_here = input[0];
    double best = input[0];
    target[0] = input[0];
    for (int i = 1; i < length; ++i) {
      const double value = input[i];
      ending_here = std::max(ending_here + value, value);
      best = std::max(best, ending_here);
      target[i] = static_cast<float>(best);
    }
  }
};

}  // namespace

const Task& cumulative_max_subarray_task() {
  static const CumulativeMaxSubarray task;
  return task;
}

}  // namespace posattn

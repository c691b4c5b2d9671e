// y_i = median(x_0, ..., x_i); for an even count the midpoint of the middle two.
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class CumulativeMedian final : public Task {
 public:
  std::string_view name() const override { return "cumulative-median"; }
  std::string_view description() const override {
    return "median of each prefix (midpoint of the middle two)";
  }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    std::vector<double> sorted;
    sorted.reserve(length);
    for (int i = 0; i < length; ++i) {
      const double value = input[i];
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value), value);
      const double median = (sorted[i / 2] + sorted[(i + 1) / 2]) / 2;
      target[i] = static_cast<float>(median);
    }
  }
};

}  // namespace

const Task& cumulative_median_task() {
  static const CumulativeMedian task;
  return task;
}

}  // namespace posattn

// y = x in ascending order.
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class Sort final : public Task {
 public:
  std::string_view name() const override { return "sort"; }
  std::string_view description() const override { return "the values in ascending order"; }

  void solve(int /*length*/, std::span<const float> input, std::span<float> target) const override {
    std::ranges::copy(input, target.begin());
    std::ranges::sort(target);
  }
};

}  // namespace

const Task& sort_task() {
  static const Sort task;
  return task;
}

}  // namespace posattn

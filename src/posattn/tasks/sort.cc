// y = x in ascending order.
#include <algorithm>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class Sort final : public Task {
 public:
  std::string_view name() const override { return "sort"; }
  std::string_view description() const override { return "the values in ascending order"; }

  void solve(int length, const float* input, float* target) const override {
    std::copy_n(input, length, target);
    std::sort(target, target + length);
  }
};

}  // namespace

const Task& sort_task() {
  static const Sort task;
  return task;
}

}  // namespace posattn

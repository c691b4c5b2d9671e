// The list of tasks. Adding one is adding its line here.
#include <string>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

// For each name: the function `const Task& <name>_task()`, defined in <name>.cc.
// clang-format off
#define POSATTN_EACH_TASK(task) \
  task(cumulative_sum)          \
  task(cumulative_min)          \
  task(cumulative_max)          \
  task(cumulative_median)       \
  task(cumulative_max_subarray) \
  task(sort)                    \
  task(min_sum)                 \
  task(path)
// clang-format on

namespace posattn {

#define POSATTN_DECLARE(name) const Task& name##_task();
POSATTN_EACH_TASK(POSATTN_DECLARE)
#undef POSATTN_DECLARE

const std::vector<const Task*>& tasks() {
#define POSATTN_ADDRESS(name) &name##_task(),
  static const std::vector<const Task*> list = {POSATTN_EACH_TASK(POSATTN_ADDRESS)};
#undef POSATTN_ADDRESS
  return list;
}

const Task& find_task(std::string_view name) {
  std::vector<std::string> known;
  for (const Task* task : tasks()) {
    if (task->name() == name) return *task;
    known.emplace_back(task->name());
  }
  throw unknown_name(ExitCode::usage, "task", name, known);
}

}  // namespace posattn

// The list of tasks. Adding one is adding its line here.
#include <fmt/format.h>

#include <algorithm>
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

namespace {

std::vector<const Task*>& list() {
#define POSATTN_ADDRESS(name) &name##_task(),
  static std::vector<const Task*> all = {POSATTN_EACH_TASK(POSATTN_ADDRESS)};
#undef POSATTN_ADDRESS
  return all;
}

}  // namespace

const std::vector<const Task*>& tasks() { return list(); }

void register_task(std::unique_ptr<const Task> task) {
  const std::string name(task->name());
  const bool spelled = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!spelled) {
    throw Error(ExitCode::configuration, fmt::format("a task named '{}'", name),
                "a-z, 0-9 and hyphens: files and folders are named after it");
  }
  for (const Task* other : list()) {
    if (other->name() != name) continue;
    throw Error(ExitCode::configuration, fmt::format("a second task named '{}'", name),
                "a name of its own");
  }
  static std::vector<std::unique_ptr<const Task>> owned;  // for as long as the program runs
  list().push_back(task.get());
  owned.push_back(std::move(task));
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

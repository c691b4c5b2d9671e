// The tasks of task_list.inc, by name.
#include <fmt/format.h>

#include <string>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

namespace posattn {

#define POSATTN_TASK(name) const Task& name##_task();
#include "posattn/tasks/task_list.inc"
#undef POSATTN_TASK

const std::vector<const Task*>& tasks() {
#define POSATTN_TASK(name) &name##_task(),
  static const std::vector<const Task*> list = {
#include "posattn/tasks/task_list.inc"
  };
#undef POSATTN_TASK
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

const Task& task_named_in(const std::string& file, std::string_view name) {
  try {
    return find_task(name);
  } catch (const Error& error) {
    throw Error(ExitCode::data, fmt::format("{} in {}", error.problem(), file), error.expected(),
                error.hint());
  }
}

}  // namespace posattn

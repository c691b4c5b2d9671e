// Tasks must not change while a run reads them.
#pragma once

#include <atomic>

namespace posattn::python {

class TasksInUse {
 public:
  TasksInUse() { ++count(); }
  ~TasksInUse() { --count(); }
  TasksInUse(const TasksInUse&) = delete;
  TasksInUse& operator=(const TasksInUse&) = delete;

  static bool any() { return count() > 0; }

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> runs = 0;
    return runs;
  }
};

}  // namespace posattn::python

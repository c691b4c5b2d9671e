#include "posattn/tasks/task.h"

namespace posattn {

TaskShape Task::shape(int length) const { return {.real_nodes = length}; }

void Task::draw(RandomStream& random, const ValueRange& range, int length, float* input) const {
  draw_values(random, range, shape(length).input_count(), input);
}

}  // namespace posattn

// For the tests: a small model of a task, its parameters still zero.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/spec.h"
#include "posattn/tasks/task.h"

namespace posattn {

inline Model model_for(const char* task, int length, bool variable_length = false) {
  const TaskShape shape = find_task(task).shape(length);
  ModelSpec spec;
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = shape.data_columns;
  spec.output_columns = shape.output_columns;
  spec.vocabulary = shape.vocabulary;
  spec.tokens_and_values = shape.tokens_and_values;
  spec.read_nodes = shape.read_nodes;
  spec.width = 8;
  spec.mlp_width = 8;
  spec.depth = 2;
  spec = resolve(spec);
  return {.spec = spec,
          .parameters = Parameters<float>(spec),
          .origin = {.task = task,
                     .length = length,
                     .variable_length = variable_length,
                     .range = 2,
                     .integers = false,
                     .notes = {}}};
}

}  // namespace posattn

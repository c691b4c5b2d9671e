// Samples of one length, made from counter-based random numbers: sample i of a set is the same
// whatever the set's size and the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posattn/tasks/task.h"
#include "posattn/tensor/buffer.h"

namespace posattn {

struct Dataset {
  int length = 0;  // the task's n
  TaskShape shape;
  int64_t samples = 0;
  Buffer<float> inputs = {};          // [samples, real_nodes, data_columns]
  Buffer<float> targets = {};         // [samples, real_nodes, output_columns]; empty with labels
  Buffer<int32_t> tokens = {};        // [samples, real_nodes], for tasks with a vocabulary
  Buffer<int32_t> labels = {};        // [samples, real_nodes], for tasks with classes
  Buffer<float> pairs = {};           // [samples, real_nodes, real_nodes, pair_columns]
  Buffer<int32_t> pair_classes = {};  // [samples, real_nodes, real_nodes]
  Buffer<float> hints = {};           // [samples, ...], as in BatchOf; training adds them
};

struct DatasetRequest {
  const Task* task = nullptr;
  int length = 8;
  int shortest_length = 0;  // of several lengths; 0: the task's
  int64_t samples = 0;
  ValueRange range;
  uint64_t seed = 0;
  Purpose purpose = Purpose::train_data;
  // Where on which axis of the task: part of the random key, so each test has samples of its own.
  double scale = 1;
  int threads = 1;
  std::string axis = "c";
  int64_t sets_before =
      0;                // sets of this size that were drawn before: the samples go on from there
  bool listed = false;  // sample i has the i-th of Task::symbol_inputs
};

// Throws Error(configuration) for sizes that are impossible, and for a task whose pairs are no
// finite numbers or of classes that it does not have.
Dataset make_dataset(const DatasetRequest& request);

// Lengths from the shortest to n in equal shares (the first lengths take the remainder), one set
// per length.
std::vector<Dataset> make_variable_length(DatasetRequest request);

// 1 where an output counts in the loss, [real_nodes, output_columns].
std::vector<uint8_t> loss_mask(const Task& task, int length);

}  // namespace posattn

// For tests: a task with every kind of column, registered as a library's user would.
#pragma once

#include "posattn/tasks/task.h"
#include "posattn/training/small_run_test.h"

namespace posattn {

// Node 0 holds a number, the others tokens; each but the first two says its neighbour's token.
class TokenTask : public Task {
 public:
  std::string_view name() const override { return "tokens-of-a-test"; }
  std::string_view description() const override { return "the token before"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = 1, .output_columns = 4, .vocabulary = 4};
  }
  Loss loss() const override { return Loss::cross_entropy; }
  std::vector<TestAxis> test_axes() const override { return {{"first", "token of node 1"}}; }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_values(random, sampling.range, room.values.first(1));
    for (int i = 0; i < length; ++i) {
      room.tokens[i] = i == 0 ? -1 : static_cast<int32_t>(random.below(4));
      if (i == 1 && sampling.axis == "first") room.tokens[i] = static_cast<int32_t>(sampling.x);
      room.labels[i] = i < 2 ? -1 : room.tokens[i - 1];
    }
  }
};

inline RunConfig small_token_run() {
  static const bool registered = (register_task(std::make_unique<TokenTask>()), true);
  RunConfig config = small_run();
  config.task = registered ? "tokens-of-a-test" : "";
  config.length = 4;
  config.validate_every = config.test_every = 0;
  return config;
}

}  // namespace posattn

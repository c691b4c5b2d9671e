// A window of a stream of numbers, the newest one last: its node alone answers, for all of them.
//   stream-sum: x_0 + ... + x_{n-1};  stream-mean: that / n;  stream-min: the smallest
#include <algorithm>
#include <numeric>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class StreamTask final : public Task {
 public:
  using Answer = double (*)(std::span<const float> window);
  StreamTask(std::string_view name, std::string_view description, Answer answer)
      : name_(name), description_(description), answer_(answer) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  TaskShape shape(int length) const override { return {.real_nodes = length, .read_nodes = -1}; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"scratch-nodes", "0"}};  // a stream has none
  }
  void solve(int /*length*/, std::span<const float> input, std::span<float> target) const override {
    std::ranges::fill(target, 0.0f);  // of the nodes that do not answer
    target.back() = static_cast<float>(answer_(input));
  }

 private:
  std::string_view name_, description_;
  Answer answer_;
};

double sum_of(std::span<const float> window) {
  return std::accumulate(window.begin(), window.end(), 0.0);
}
double mean_of(std::span<const float> window) {
  return sum_of(window) / static_cast<double>(window.size());
}
double least_of(std::span<const float> window) { return *std::ranges::min_element(window); }

}  // namespace

const Task& stream_sum_task() {
  static const StreamTask task("stream-sum", "sum of the last n values, at the newest", sum_of);
  return task;
}

const Task& stream_mean_task() {
  static const StreamTask task("stream-mean", "mean of the last n values, at the newest", mean_of);
  return task;
}

const Task& stream_min_task() {
  static const StreamTask task("stream-min", "minimum of the last n values, at the newest",
                               least_of);
  return task;
}

}  // namespace posattn

// Path sums: the input is the adjacency matrix [n, n] of a weighted line graph whose nodes are
// relabelled at random, the target at (i, j) the sum of the weights on the path between i and j.
// Both matrices are symmetric, so only the strict upper triangle counts.
#include <algorithm>
#include <numeric>
#include <utility>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// The labels of the line's nodes from one end to the other. A weight is an edge when it is not 0;
// in a matrix that is no line graph the walk stops where it cannot go on.
std::vector<int> walk(int length, std::span<const float> weights) {
  const auto neighbour = [&](int node, int except) {
    for (int other = 0; other < length; ++other) {
      if (other != except && weights[int64_t{1} * node * length + other] != 0) return other;
    }
    return -1;
  };
  int node = 0;
  int previous = -1;
  // Go from node 0 to an end, then turn round and collect.
  for (int step = 0; step < length; ++step) {
    const int next = neighbour(node, previous);
    if (next < 0) break;
    previous = std::exchange(node, next);
  }
  std::vector<int> order = {node};
  previous = -1;
  while (static_cast<int>(order.size()) < length) {
    const int next = neighbour(node, previous);
    if (next < 0) break;
    previous = std::exchange(node, next);
    order.push_back(node);
  }
  return order;
}

class Path final : public Task {
 public:
  std::string_view name() const override { return "path"; }
  std::string_view description() const override {
    return "sum of the weights between all pairs of nodes of a weighted line graph";
  }

  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = length, .output_columns = length};
  }
  int shortest_length() const override { return 2; }
  bool supports_variable_length() const override { return false; }
  bool counts(int /*length*/, int node, int column) const override { return column > node; }

  void draw(RandomStream& random, const ValueRange& range, int length,
            std::span<float> input) const override {
    std::vector<float> weights(length - 1);
    draw_values(random, range, weights);
    // A weight of zero would cut the line in two; it is common only among integers.
    for (float& weight : weights) {
      while (weight == 0) draw_values(random, range, {&weight, 1});
    }
    std::vector<int> label(length);
    std::iota(label.begin(), label.end(), 0);
    for (int i = length - 1; i > 0; --i) {
      std::swap(label[i], label[random.below(static_cast<uint32_t>(i) + 1)]);
    }
    std::ranges::fill(input, 0.0f);
    for (int i = 0; i + 1 < length; ++i) {
      input[int64_t{1} * label[i] * length + label[i + 1]] = weights[i];
      input[int64_t{1} * label[i + 1] * length + label[i]] = weights[i];
    }
  }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    std::ranges::fill(target, 0.0f);
    const std::vector<int> order = walk(length, input);
    for (size_t from = 0; from < order.size(); ++from) {
      double sum = 0;
      for (size_t to = from + 1; to < order.size(); ++to) {
        sum += input[int64_t{1} * order[to - 1] * length + order[to]];
        target[int64_t{1} * order[from] * length + order[to]] = static_cast<float>(sum);
        target[int64_t{1} * order[to] * length + order[from]] = static_cast<float>(sum);
      }
    }
  }
};

}  // namespace

const Task& path_task() {
  static const Path task;
  return task;
}

}  // namespace posattn

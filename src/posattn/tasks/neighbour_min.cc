// The least value among a node's neighbours and its own, y_i = min(x_i, min over edges (i, j) of
// x_j), in a random graph. The graph is drawn by Erdos and Renyi: each edge is there with
// probability p, and p is uniform in [0.1, 0.5] for each sample, so that no model can take one
// density for granted. Pairs have class 1 for an edge and 0 for none; there are no loops.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr float least_share = 0.1f, most_share = 0.5f;  // of the edges

class NeighbourMin final : public Task {
 public:
  std::string_view name() const override { return "neighbour-min"; }
  std::string_view description() const override {
    return "minimum over a node and its neighbours in a random graph";
  }
  TaskShape shape(int length) const override { return {.real_nodes = length, .pair_classes = 2}; }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_values(random, sampling.range, room.values);
    const float share = random.uniform(least_share, most_share);
    const int64_t n = length;
    std::ranges::copy(room.values, room.targets.begin());
    std::ranges::fill(room.pair_classes, 0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        if (random.uniform() >= share) continue;
        room.pair_classes[i * n + j] = room.pair_classes[j * n + i] = 1;
        room.targets[i] = std::min(room.targets[i], room.values[j]);
        room.targets[j] = std::min(room.targets[j], room.values[i]);
      }
    }
  }

  std::vector<Baseline> baselines() const override {
    return {{"graph-blind", "the best answer from the values alone: its mean over all graphs",
             answer_without_graph}};
  }

 private:
  // Of the values below x_i in ascending order, the k-th (from 0) is the answer where it is a
  // neighbour and those before are none: with probability p (1 - p)^k. Over p uniform in [a, b],
  // whose q = 1 - p is uniform in [1 - b, 1 - a], the mean of q^k is
  // m_k = ((1 - a)^(k + 1) - (1 - b)^(k + 1)) / ((k + 1) (b - a)), and that of p q^k is m_k - m_(k
  // + 1).
  static void answer_without_graph(int length, const SampleView& sample, std::span<float> outputs) {
    const double a = least_share, b = most_share;
    const auto mean_of_power = [&](int k) {
      return (std::pow(1 - a, k + 1) - std::pow(1 - b, k + 1)) / ((k + 1) * (b - a));
    };
    std::vector<float> ascending(sample.values.begin(), sample.values.end());
    std::ranges::sort(ascending);
    for (int i = 0; i < length; ++i) {
      double mean = 0;
      int below = 0;
      for (; below < length && ascending[below] < sample.values[i]; ++below) {
        mean += ascending[below] * (mean_of_power(below) - mean_of_power(below + 1));
      }
      outputs[i] = static_cast<float>(mean + sample.values[i] * mean_of_power(below));
    }
  }
};

}  // namespace

const Task& neighbour_min_task() {
  static const NeighbourMin task;
  return task;
}

}  // namespace posattn

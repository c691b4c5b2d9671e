// Tasks of a node and its neighbours in a random graph: the sum, mean or least of their values, and
// the distance to the nearest marked node. With N(i) the node and its neighbours:
//   neighbour-sum: y_i = sum of x_j over j in N(i);  neighbour-mean: that / |N(i)|
//   neighbour-min: y_i = the least x_j over j in N(i)
//   distance-to-marked: x_i is 1 at one or two marked nodes and 0 elsewhere; the class of node i is
//   the number of hops to the nearest of them, and the last class is farther or not connected.
// The graph is drawn by Erdos and Renyi: each edge is there with probability p, and p is uniform in
// [0.1, 0.5] for each sample, so that no model can take one density for granted.
#include <algorithm>
#include <cmath>

#include "posattn/tasks/structure.h"

namespace posattn {
namespace {

constexpr float least_share = 0.1f, most_share = 0.5f;  // of the edges

// Mean of (1 - p)^k over p. With q = 1 - p uniform in [1 - b, 1 - a] it is
// ((1 - a)^(k + 1) - (1 - b)^(k + 1)) / ((k + 1) (b - a)).
double mean_of_power(int k) {
  const double a = least_share, b = most_share;
  return (std::pow(1 - a, k + 1) - std::pow(1 - b, k + 1)) / ((k + 1) * (b - a));
}

// What a family member asks, and the best answer from the values alone.
struct NeighbourRow {
  const char* name;
  const char* description;
  // Of a node's value and its neighbours'.
  double (*answer)(float own, const std::vector<float>& others);
  void (*answer_without_graph)(int length, const SampleView& sample, std::span<float> outputs);
};

double sum_with(float own, const std::vector<float>& others) {
  double sum = own;
  for (const float other : others) sum += other;
  return sum;
}

double mean_with(float own, const std::vector<float>& others) {
  return sum_with(own, others) / static_cast<double>(others.size() + 1);
}

double least_with(float own, const std::vector<float>& others) {
  for (const float other : others) own = std::min(own, other);
  return own;
}

// x_i w + (the sum of all others) v, with the mean weights w of a node and v of any other.
void weigh(const SampleView& sample, double own, double other, std::span<float> outputs) {
  double all = 0;
  for (const float value : sample.values) all += value;
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = static_cast<float>(own * sample.values[i] + other * (all - sample.values[i]));
  }
}

void sum_without_graph(int, const SampleView& sample, std::span<float> outputs) {
  weigh(sample, 1, (least_share + most_share) / 2.0, outputs);
}

// A node's weight is 1 / (1 + D), D its degree, which is binomial: the mean of that is
// (1 - (1 - p)^n) / (n p) = ((1 - p)^0 + ... + (1 - p)^(n - 1)) / n. The weights add up to 1.
void mean_without_graph(int length, const SampleView& sample, std::span<float> outputs) {
  double own = 0;
  for (int k = 0; k < length; ++k) own += mean_of_power(k) / length;
  weigh(sample, own, length > 1 ? (1 - own) / (length - 1) : 0, outputs);
}

// Of the values below x_i in ascending order, the k-th (from 0) is the answer where it is a
// neighbour and those before are none: with probability p (1 - p)^k, whose mean over p is that of
// (1 - p)^k - (1 - p)^(k + 1).
void least_without_graph(int length, const SampleView& sample, std::span<float> outputs) {
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

constexpr NeighbourRow sum_row{"neighbour-sum",
                               "sum over a node and its neighbours in a random graph", sum_with,
                               sum_without_graph};
constexpr NeighbourRow mean_row{"neighbour-mean",
                                "mean over a node and its neighbours in a random graph", mean_with,
                                mean_without_graph};
constexpr NeighbourRow min_row{"neighbour-min",
                               "minimum over a node and its neighbours in a random graph",
                               least_with, least_without_graph};

// What all tasks of this file share: the graphs, and what pairs hold of them.
class TaskOfNeighbours : public Task {
 public:
  explicit TaskOfNeighbours(const Structure& structure) : structure_(structure) {}

  std::vector<TaskParameter> parameters() const override { return structure_parameters(); }
  TaskShape shape(int length) const override {
    TaskShape shape{.real_nodes = length};
    add_pairs(structure_, shape);
    return shape;
  }
  std::vector<TestAxis> test_axes() const override { return graph_axes(); }

 protected:
  Graph graph_of(RandomStream& random, const Sampling& sampling, int length) const {
    return draw_graph(random, sampling, length, least_share, most_share, *this);
  }

  Structure structure_;
};

class NeighbourValues final : public TaskOfNeighbours {
 public:
  explicit NeighbourValues(const NeighbourRow& row, const Structure& structure = {})
      : TaskOfNeighbours(structure), row_(row) {}

  std::string_view name() const override { return row_.name; }
  std::string_view description() const override { return row_.description; }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<NeighbourValues>(row_, structure_of(values));
  }
  std::vector<TestAxis> test_axes() const override {
    std::vector<TestAxis> axes = Task::test_axes();
    for (TestAxis& axis : graph_axes()) axes.push_back(std::move(axis));
    return axes;
  }
  std::vector<Baseline> baselines() const override {
    return {{"graph-blind", "the best answer from the values alone: its mean over all graphs",
             row_.answer_without_graph}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_values(random, sampling.range, room.values);
    const Graph graph = graph_of(random, sampling, length);
    fill_pairs(structure_, graph, room);
    std::vector<float> others;
    for (int i = 0; i < length; ++i) {
      others.clear();
      for (int j = 0; j < length; ++j) {
        if (graph.edge(i, j)) others.push_back(room.values[j]);
      }
      room.targets[i] = static_cast<float>(row_.answer(room.values[i], others));
    }
  }

 private:
  const NeighbourRow& row_;
};

class DistanceToMarked final : public TaskOfNeighbours {
 public:
  using TaskOfNeighbours::TaskOfNeighbours;

  std::string_view name() const override { return "distance-to-marked"; }
  std::string_view description() const override {
    return "hops to the nearest marked node in a random graph (classes 0 to 7, and farther)";
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<DistanceToMarked>(structure_of(values));
  }
  TaskShape shape(int length) const override {
    TaskShape shape = TaskOfNeighbours::shape(length);
    shape.output_columns = hop_classes;
    return shape;
  }
  Loss loss() const override { return Loss::cross_entropy; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"test-axis", "graphs=0,1,2"}};
  }
  std::vector<Baseline> baselines() const override {
    return {
        {"graph-blind",
         "the best answer from the marks alone at 16 nodes: 0 hops where a node is marked, else "
         "2 for one mark and 1 for two",
         answer_by_marks}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const auto n = static_cast<uint32_t>(length);
    std::ranges::fill(room.values, 0.0f);
    room.values[random.below(n)] = 1;
    if (random.below(2) == 1) room.values[random.below(n)] = 1;
    const Graph graph = graph_of(random, sampling, length);
    fill_pairs(structure_, graph, room);
    const std::vector<int32_t> hops = hop_distances(graph);
    for (int64_t i = 0; i < length; ++i) {
      room.labels[i] = hop_classes - 1;
      for (int64_t j = 0; j < length; ++j) {
        if (room.values[j] == 1) {
          room.labels[i] = std::min(room.labels[i], hop_class(hops[i * length + j]));
        }
      }
    }
  }

 private:
  static void answer_by_marks(int length, const SampleView& sample, std::span<float> outputs) {
    const auto marks = std::ranges::count(sample.values, 1.0f);
    std::ranges::fill(outputs, 0.0f);
    for (int i = 0; i < length; ++i) {
      outputs[i * hop_classes + (sample.values[i] == 1 ? 0 : marks == 1 ? 2 : 1)] = 1;
    }
  }
};

}  // namespace

const Task& neighbour_sum_task() {
  static const NeighbourValues task(sum_row);
  return task;
}

const Task& neighbour_mean_task() {
  static const NeighbourValues task(mean_row);
  return task;
}

const Task& neighbour_min_task() {
  static const NeighbourValues task(min_row);
  return task;
}

const Task& distance_to_marked_task() {
  static const DistanceToMarked task{Structure()};
  return task;
}

}  // namespace posattn

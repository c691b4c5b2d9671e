// Questions about a random graph. As in arXiv 2405.18512 a sample is a list of edges and a
// question, or each node holds its row of the adjacency matrix, or the graph stands in the pairs of
// nodes.
//   graph-count: how many edges there are, or the degree of a node
//   graph-edge, graph-connected, graph-distance: is there an edge between two nodes, a path, and of
//   how many edges is the shortest (classes 1 to 7, and farther or none)
//   graph-cycle: is there any cycle
//   one-two-cycle (arXiv 2402.09268): is the graph one cycle, or two of half the length
#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/tasks/graph.h"

namespace posattn {
namespace {

enum class GraphForm { edges, rows, pairs };

struct GraphQuestion {
  const char* name;
  const char* description;
  int asked;    // nodes that the question names
  int classes;  // 0: the answer is a number
  // Of the nodes a and b, as far as they are asked.
  int (*answer)(const Graph& graph, int a, int b);
  // The same from the degrees alone; null: the answer without any graph.
  int (*by_degrees)(const Graph& graph, int a, int b) = nullptr;
  bool cycles = false;  // graphs are one cycle or two
};

int count_edges(const Graph& graph, int, int) { return graph.edge_count(); }
int degree_of(const Graph& graph, int a, int) { return graph.degree(a); }
int is_edge(const Graph& graph, int a, int b) { return graph.edge(a, b) ? 1 : 0; }
int hops_between(const Graph& graph, int a, int b) {
  return hop_distances(graph)[static_cast<size_t>(a) * graph.nodes + b];
}
int is_connected(const Graph& graph, int a, int b) {
  return hops_between(graph, a, b) >= 0 ? 1 : 0;
}
int distance_class(const Graph& graph, int a, int b) {
  return hop_class(hops_between(graph, a, b));
}

int components(const Graph& graph) {
  const std::vector<int32_t> hops = hop_distances(graph);
  int count = 0;
  for (int64_t i = 0; i < graph.nodes; ++i) {  // the first of its component reaches none before
    const auto row = hops.begin() + i * graph.nodes;
    count += std::all_of(row, row + i, [](int32_t hop) { return hop < 0; }) ? 1 : 0;
  }
  return count;
}

// A forest has as many edges as nodes, less one for each component.
int has_cycle(const Graph& graph, int, int) {
  return graph.edge_count() > graph.nodes - components(graph) ? 1 : 0;
}
int is_two_cycles(const Graph& graph, int, int) { return components(graph) - 1; }

bool both_have_edges(const Graph& graph, int a, int b) {
  return graph.degree(a) > 0 && graph.degree(b) > 0;
}

// With given degrees and random ends, a and b share d_a d_b / (2 E) edges on average: at least
// half.
int edge_by_degrees(const Graph& graph, int a, int b) {
  return both_have_edges(graph, a, b) && graph.degree(a) * graph.degree(b) >= graph.edge_count()
             ? 1
             : 0;
}
int connected_by_degrees(const Graph& graph, int a, int b) {
  return both_have_edges(graph, a, b) ? 1 : 0;
}
int distance_by_degrees(const Graph& graph, int a, int b) {
  return !both_have_edges(graph, a, b) ? hop_classes - 1 : 2 - edge_by_degrees(graph, a, b);
}
// No forest has these degrees: it has fewer edges than nodes with edges.
int cycle_by_degrees(const Graph& graph, int, int) {
  int with_edges = 0;
  for (int i = 0; i < graph.nodes; ++i) with_edges += graph.degree(i) > 0 ? 1 : 0;
  return with_edges > 0 && graph.edge_count() >= with_edges ? 1 : 0;
}
int one_cycle_always(const Graph&, int, int) { return 0; }  // all degrees are 2

constexpr GraphQuestion edges_question{
    "graph-count", "how many edges a random graph has, or a node's degree", 0, 0, count_edges};
constexpr GraphQuestion degree_question{"graph-count", edges_question.description, 1, 0, degree_of};
constexpr GraphQuestion edge_question{
    "graph-edge",   "whether an edge connects two nodes of a random graph", 2, 2, is_edge,
    edge_by_degrees};
constexpr GraphQuestion connected_question{
    "graph-connected",   "whether a path connects two nodes of a random graph", 2, 2, is_connected,
    connected_by_degrees};
constexpr GraphQuestion distance_question{
    "graph-distance",
    "hops between two nodes of a random graph (classes 1 to 7, and farther)",
    2,
    hop_classes,
    distance_class,
    distance_by_degrees};
constexpr GraphQuestion cycle_question{
    "graph-cycle", "whether a random graph has a cycle", 0, 2, has_cycle, cycle_by_degrees};
constexpr GraphQuestion one_two_question{"one-two-cycle",
                                         "whether a graph is one cycle or two of half the length",
                                         0,
                                         2,
                                         is_two_cycles,
                                         one_cycle_always,
                                         true};

class GraphTask final : public Task {
 public:
  explicit GraphTask(const GraphQuestion& question, GraphForm form = GraphForm::edges,
                     int percent = 0)
      : question_(question), form_(form), percent_(percent) {}

  std::string_view name() const override { return question_.name; }
  std::string_view description() const override { return question_.description; }
  std::vector<TaskParameter> parameters() const override {
    std::vector<TaskParameter> list = {{.name = "form",
                                        .description = "where the graph stands",
                                        .words = {"edges", "rows", "pairs"}}};
    if (question_.cycles) return list;
    list.push_back({.name = "percent",
                    .description = "of all edges in a graph; 0: another share for each sample",
                    .most = 100});
    if (question_.classes == 0) {
      list.push_back(
          {.name = "count", .description = "what to count", .words = {"edges", "degree"}});
    }
    return list;
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    const bool degree = values.size() > 2 && values[2] == 1;
    return std::make_unique<GraphTask>(degree ? degree_question : question_, GraphForm(values[0]),
                                       values.size() > 1 ? values[1] : 0);
  }

  // Edges: columns [an edge, the question, a number for each node]: the ends of the edge, or the
  // nodes asked for, are 1. The last node of the network holds the question and answers. Rows and
  // pairs: columns [1, is a, is b, row of the adjacency matrix]; a and b answer, or all nodes.
  TaskShape shape(int length) const override {
    TaskShape shape{.real_nodes = length, .data_columns = form_ == GraphForm::edges ? 2 : 3};
    if (form_ == GraphForm::edges) {
      const int64_t n = length, most = question_.cycles ? n : n * (n - 1) / 2;
      shape.real_nodes = 1 + static_cast<int>(std::min<int64_t>(most, 1 << 30));
      shape.read_nodes = -1;
    }
    if (form_ == GraphForm::pairs) {
      shape.pair_classes = 2;
    } else {
      shape.data_columns += length;
    }
    shape.output_columns = std::max(1, question_.classes);
    return shape;
  }
  int shortest_length() const override { return question_.cycles ? 6 : 2; }
  bool supports_variable_length() const override { return form_ == GraphForm::pairs; }
  Loss loss() const override {
    return question_.classes > 0 ? Loss::cross_entropy : Loss::squared_error;
  }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"test-axis", question_.cycles ? "cycles=0,1,2" : "graphs=0"}};
  }
  std::vector<TestAxis> test_axes() const override {
    if (!question_.cycles) return graph_axes();
    return {{"cycles", "0: one or two, as in training; 1 or 2: always as many",
             "cycles (0: one or two)", true}};
  }
  std::vector<Baseline> baselines() const override {
    if (question_.by_degrees == nullptr) {
      return {{"graph-blind", "the mean answer over all graphs",
               [this](int length, const SampleView&, std::span<float> outputs) {
                 const double share = percent_ == 0 ? 0.5 : percent_ / 100.0;
                 const double degree = share * (length - 1);
                 const bool edges = question_.asked == 0;
                 std::ranges::fill(outputs,
                                   static_cast<float>(edges ? degree * length / 2 : degree));
               }}};
    }
    return {{"degree-only", "the answer that degrees make likely",
             [this](int length, const SampleView& sample, std::span<float> outputs) {
               answer_by_degrees(length, sample, outputs);
             }}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const auto n = static_cast<uint32_t>(length);
    const Graph graph = graph_of(random, sampling, length);
    const auto a = static_cast<int>(random.below(n));
    auto b = static_cast<int>(random.below(n - 1));
    if (b >= a) ++b;
    const int asked[] = {a, b};
    const std::span<const int> named(asked, static_cast<size_t>(question_.asked));
    std::ranges::fill(room.values, 0.0f);
    std::ranges::fill(room.targets, 0.0f);
    std::ranges::fill(room.labels, -1);
    const auto answer_at = [&](int64_t node, int answer) {
      if (question_.classes > 0) {
        room.labels[node] = answer;
      } else {
        room.targets[node] = static_cast<float>(answer);
      }
    };
    if (form_ == GraphForm::edges) {
      write_edges(random, graph, named, room.values);
      answer_at(shape(length).real_nodes - 1, question_.answer(graph, a, b));
      return;
    }
    write_nodes(graph, named, room);
    if (question_.asked == 2) {
      for (const int node : asked) answer_at(node, question_.answer(graph, a, b));
    } else {
      for (int i = 0; i < length; ++i) answer_at(i, question_.answer(graph, i, i));
    }
  }

 private:
  Graph graph_of(RandomStream& random, const Sampling& sampling, int length) const {
    if (!question_.cycles) {
      const float share = static_cast<float>(percent_) / 100;
      return draw_graph(random, sampling, length, share, percent_ == 0 ? 1 : share, *this);
    }
    int cycles = 1 + static_cast<int>(random.below(2));
    if (sampling.axis == "cycles" && sampling.x != 0) {
      if (sampling.x != 1 && sampling.x != 2) {
        throw Error(ExitCode::usage, fmt::format("cycles = {} for task {}", sampling.x, name()),
                    "0 as in training, 1 or 2");
      }
      cycles = static_cast<int>(sampling.x);
    }
    return relabelled(random, cycle_graph(length, cycles));
  }

  static void write_edges(RandomStream& random, const Graph& graph, std::span<const int> named,
                          std::span<float> values) {
    std::vector<std::pair<int, int>> edges;
    for (int i = 0; i < graph.nodes; ++i) {
      for (int j = i + 1; j < graph.nodes; ++j) {
        if (graph.edge(i, j)) edges.emplace_back(i, j);
      }
    }
    shuffle(random, edges);
    const size_t columns = static_cast<size_t>(graph.nodes) + 2;
    for (size_t slot = 0; slot < edges.size(); ++slot) {
      float* row = values.data() + slot * columns;
      row[0] = row[2 + edges[slot].first] = row[2 + edges[slot].second] = 1;
    }
    float* question = values.data() + values.size() - columns;
    question[1] = 1;
    for (const int node : named) question[2 + node] = 1;
  }

  void write_nodes(const Graph& graph, std::span<const int> named, const SampleRoom& room) const {
    const int64_t columns = std::ssize(room.values) / graph.nodes;
    for (int i = 0; i < graph.nodes; ++i) {
      float* row = room.values.data() + i * columns;
      row[0] = 1;
      if (form_ != GraphForm::rows) continue;
      for (int j = 0; j < graph.nodes; ++j) row[3 + j] = graph.edge(i, j) ? 1 : 0;
    }
    if (question_.asked == 2) {
      for (int k = 0; k < 2; ++k) room.values[named[k] * columns + 1 + k] = 1;
    }
    if (form_ == GraphForm::pairs) std::ranges::copy(graph.edges, room.pair_classes.begin());
  }

  // The graph of a sample and the nodes that it asks for, read back.
  std::pair<Graph, std::vector<int>> read(int length, const SampleView& sample) const {
    Graph graph(length);
    std::vector<int> asked(2);
    const TaskShape shape = this->shape(length);
    for (int node = 0; node < shape.real_nodes; ++node) {
      const float* row = sample.values.data() + int64_t{1} * node * shape.data_columns;
      std::vector<int> ones;  // of the last `length` columns, if there are so many
      for (int i = 0; i < length && form_ != GraphForm::pairs; ++i) {
        if (row[shape.data_columns - length + i] == 1) ones.push_back(i);
      }
      if (form_ != GraphForm::edges) {
        for (int k = 0; k < 2; ++k) {
          if (row[1 + k] == 1) asked[k] = node;
        }
        for (const int j : ones) graph.connect(node, j);
      } else if (row[1] == 1) {
        std::ranges::copy(ones, asked.begin());
      } else if (row[0] == 1) {
        graph.connect(ones[0], ones[1]);
      }
    }
    if (form_ == GraphForm::pairs) std::ranges::copy(sample.pair_classes, graph.edges.begin());
    return {graph, asked};
  }

  void answer_by_degrees(int length, const SampleView& sample, std::span<float> outputs) const {
    const auto [graph, asked] = read(length, sample);
    const int answer = question_.by_degrees(graph, asked[0], asked[1]);
    for (size_t at = 0; at < outputs.size(); ++at) {
      outputs[at] = static_cast<int>(at) % question_.classes == answer ? 1 : 0;
    }
  }

  const GraphQuestion& question_;
  GraphForm form_;
  int percent_;
};

}  // namespace

const Task& graph_count_task() {
  static const GraphTask task(edges_question);
  return task;
}

const Task& graph_edge_task() {
  static const GraphTask task(edge_question);
  return task;
}

const Task& graph_connected_task() {
  static const GraphTask task(connected_question);
  return task;
}

const Task& graph_distance_task() {
  static const GraphTask task(distance_question);
  return task;
}

const Task& graph_cycle_task() {
  static const GraphTask task(cycle_question);
  return task;
}

const Task& one_two_cycle_task() {
  static const GraphTask task(one_two_question);
  return task;
}

}  // namespace posattn

#include "posattn/tasks/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"

namespace posattn {

int Graph::degree(int i) const {
  const auto row = edges.begin() + static_cast<int64_t>(i) * nodes;
  return std::accumulate(row, row + nodes, 0);
}

int Graph::edge_count() const { return std::accumulate(edges.begin(), edges.end(), 0) / 2; }

Graph random_graph(RandomStream& random, int nodes, float share) {
  Graph graph(nodes);
  for (int i = 0; i < nodes; ++i) {
    for (int j = i + 1; j < nodes; ++j) {
      if (random.uniform() < share) graph.connect(i, j);
    }
  }
  return graph;
}

Graph relabelled(RandomStream& random, const Graph& graph) {
  std::vector<int> label(static_cast<size_t>(graph.nodes));
  std::iota(label.begin(), label.end(), 0);
  shuffle(random, label);
  Graph result(graph.nodes);
  for (int i = 0; i < graph.nodes; ++i) {
    for (int j = 0; j < i; ++j) {
      if (graph.edge(i, j)) result.connect(label[i], label[j]);
    }
  }
  return result;
}

Graph path_graph(int nodes) {
  Graph graph(nodes);
  for (int i = 1; i < nodes; ++i) graph.connect(i - 1, i);
  return graph;
}

Graph grid_graph(int nodes) {
  const int columns = static_cast<int>(std::ceil(std::sqrt(nodes)));
  Graph graph(nodes);
  for (int i = 1; i < nodes; ++i) {
    if (i % columns != 0) graph.connect(i - 1, i);
    if (i >= columns) graph.connect(i - columns, i);
  }
  return graph;
}

Graph cycle_graph(int nodes, int cycles) {
  Graph graph(nodes);
  const int first = cycles == 1 ? nodes : nodes / 2;
  for (int i = 0; i < first; ++i) graph.connect(i, (i + 1) % first);
  for (int i = first; i < nodes; ++i) graph.connect(i, i + 1 < nodes ? i + 1 : first);
  return graph;
}

Graph draw_graph(RandomStream& random, const Sampling& sampling, int nodes, float least, float most,
                 const Task& task) {
  const auto refuse = [&](const char* expected) {
    throw Error(ExitCode::usage,
                fmt::format("{} = {} for task {}", sampling.axis, sampling.x, task.name()),
                expected);
  };
  if (sampling.axis == "density") {
    if (!(sampling.x >= 0 && sampling.x <= 1)) refuse("the probability of an edge, from 0 to 1");
    return random_graph(random, nodes, static_cast<float>(sampling.x));
  }
  if (sampling.axis == "graphs" && sampling.x != 0) {
    if (sampling.x != 1 && sampling.x != 2) refuse("0 as in training, 1 for paths, 2 for grids");
    return relabelled(random, sampling.x == 1 ? path_graph(nodes) : grid_graph(nodes));
  }
  return random_graph(random, nodes, random.uniform(least, most));
}

std::vector<TestAxis> graph_axes() {
  return {{"density", "the probability of an edge", "probability of an edge"},
          {"graphs", "0: random as in training, 1: paths, 2: grids",
           "graphs (0: random, 1: paths, 2: grids)", true}};
}

std::vector<int32_t> hop_distances(const Graph& graph) {
  const int n = graph.nodes;
  std::vector<int32_t> hops(graph.edges.size(), -1);
  std::vector<int> reached;
  for (int start = 0; start < n; ++start) {
    int32_t* row = hops.data() + static_cast<int64_t>(start) * n;
    row[start] = 0;
    reached.assign(1, start);
    for (size_t next = 0; next < reached.size(); ++next) {
      for (int j = 0; j < n; ++j) {
        if (row[j] >= 0 || !graph.edge(reached[next], j)) continue;
        row[j] = row[reached[next]] + 1;
        reached.push_back(j);
      }
    }
  }
  return hops;
}

}  // namespace posattn

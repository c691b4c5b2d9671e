// Undirected graphs without loops, as tasks draw them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "posattn/tasks/task.h"

namespace posattn {

struct Graph {
  explicit Graph(int count) : nodes(count), edges(static_cast<size_t>(count) * count) {}
  bool edge(int i, int j) const { return edges[static_cast<size_t>(i) * nodes + j] != 0; }
  void connect(int i, int j) {
    edges[static_cast<size_t>(i) * nodes + j] = edges[static_cast<size_t>(j) * nodes + i] = 1;
  }
  int degree(int i) const;
  int edge_count() const;

  int nodes;
  std::vector<uint8_t> edges;  // [nodes, nodes]
};

// Each edge is there with probability `share` (Erdos and Renyi).
Graph random_graph(RandomStream& random, int nodes, float share);

// The same with the labels of its nodes in random order.
Graph relabelled(RandomStream& random, const Graph& graph);

Graph path_graph(int nodes);
// Rows of ceil(sqrt(nodes)) nodes; the last row may be shorter.
Graph grid_graph(int nodes);
// One cycle, or two of half the length; the second is longer where their number is odd.
Graph cycle_graph(int nodes, int cycles);

// A sample's graph: each edge with one probability, which is uniform in [least, most]; in a test
// along the axis "density" that of the test, and along "graphs" paths or grids in place of random
// graphs. Throws Error(usage) where an axis has no such value.
Graph draw_graph(RandomStream& random, const Sampling& sampling, int nodes, float least, float most,
                 const Task& task);
std::vector<TestAxis> graph_axes();

// The fewest edges between nodes i and j, [nodes, nodes]; -1 where no path connects them.
std::vector<int32_t> hop_distances(const Graph& graph);

template <class Value>
void shuffle(RandomStream& random, std::vector<Value>& values) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(static_cast<uint32_t>(i))]);
  }
}

// Distances as classes, the same at every number of nodes: 0 to 7 hops, then all that is farther or
// that no path leads to.
constexpr int hop_classes = 9;
inline int32_t hop_class(int32_t hops) {
  return hops < 0 || hops >= hop_classes ? hop_classes - 1 : hops;
}

}  // namespace posattn

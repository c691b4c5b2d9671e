// Graphs of the shapes that random draws practically never have: long paths, rings, stars, trees,
// graphs that fall apart. A network that stops some rounds early is wrong on a long path alone.
#pragma once

#include <utility>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

using Edges = std::vector<std::pair<int, int>>;

// How many shapes there are.
int graph_shape_count();

// A graph of n nodes of the shape `shape` mod graph_shape_count(). Nodes have their names in order,
// in reverse, or at random; a path starts at node 0 more often than elsewhere.
Edges drawn_graph(int shape, int n, RandomStream& random);

}  // namespace posattn

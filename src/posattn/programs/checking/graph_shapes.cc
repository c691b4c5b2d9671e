#include <algorithm>
#include <numeric>

#include "posattn/programs/checking/hard_inputs.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

// Each node after the first is joined to one of the `reach` nodes before it: 1 makes a path, 2 a
// deep tree, n any tree.
Edges tree(int first, int last, int reach, RandomStream& random) {
  Edges edges;
  for (int i = first + 1; i < last; ++i) {
    edges.emplace_back(i, i - 1 - below(std::min(reach, i - first), random));
  }
  return edges;
}

Edges joined(Edges a, const Edges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Edges path(int n, RandomStream& random) { return tree(0, n, 1, random); }

Edges random_edges(int n, double share, RandomStream& random) {
  Edges edges;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      if (random.uniform() < share) edges.emplace_back(i, j);
    }
  }
  return edges;
}

Edges path_with_chord(int n, RandomStream& random) {
  return joined(path(n, random), {{below(n, random), below(n, random)}});
}
Edges ring(int n, RandomStream& random) { return joined(path(n, random), {{0, n - 1}}); }
Edges two_paths(int n, RandomStream& random) {
  const int cut = below(n + 1, random);
  return joined(tree(0, cut, 1, random), tree(cut, n, 1, random));
}
Edges star(int n, RandomStream& random) {
  Edges edges;
  const int centre = below(n, random);
  for (int i = 0; i < n; ++i) edges.emplace_back(i, centre);
  return edges;
}
Edges deep_tree(int n, RandomStream& random) { return tree(0, n, 2, random); }
Edges any_tree(int n, RandomStream& random) { return tree(0, n, n, random); }
Edges binary_tree(int n, RandomStream& /*random*/) {
  Edges edges;
  for (int i = 1; i < n; ++i) edges.emplace_back(i, (i - 1) / 2);
  return edges;
}
Edges two_trees(int n, RandomStream& random) {
  const int cut = below(n + 1, random);
  return joined(tree(0, cut, n, random), tree(cut, n, n, random));
}
// A path that ends in a set of nodes all joined.
Edges lollipop(int n, RandomStream& random) {
  const int cut = below(n, random);
  Edges edges = tree(0, cut + 1, 1, random);
  for (int i = cut; i < n; ++i) {
    for (int j = cut; j < i; ++j) edges.emplace_back(i, j);
  }
  return edges;
}
Edges grid(int n, RandomStream& random) {
  const int columns = 1 + below(n, random);
  Edges edges;
  for (int i = 0; i < n; ++i) {
    if (i % columns > 0) edges.emplace_back(i, i - 1);
    if (i >= columns) edges.emplace_back(i, i - columns);
  }
  return edges;
}
Edges matching(int n, RandomStream& /*random*/) {
  Edges edges;
  for (int i = 1; i < n; i += 2) edges.emplace_back(i, i - 1);
  return edges;
}
Edges empty(int /*n*/, RandomStream& /*random*/) { return {}; }
Edges complete(int n, RandomStream& random) { return random_edges(n, 2, random); }
Edges all_but_few(int n, RandomStream& random) { return random_edges(n, 0.9, random); }
// About as many edges as nodes: where graphs begin to hang together.
Edges sparse(int n, RandomStream& random) { return random_edges(n, 1.2 / n, random); }

using Shape = Edges (*)(int n, RandomStream& random);
// Long paths stand here several times: most mistakes of algorithms on graphs need one.
constexpr Shape shapes[] = {path,      path,     path_with_chord, ring,     two_paths, star,
                            deep_tree, any_tree, binary_tree,     path,     two_trees, lollipop,
                            grid,      matching, empty,           complete, sparse,    all_but_few};

}  // namespace

int graph_shape_count() { return static_cast<int>(std::size(shapes)); }

Edges drawn_graph(int shape, int n, RandomStream& random) {
  std::vector<int> names(n);
  std::iota(names.begin(), names.end(), 0);
  const int order = below(8, random);
  if (order == 1) std::ranges::reverse(names);
  if (order > 1) names = random_order(n, random);
  // Algorithms that have a start mostly start at node 0.
  if (order > 3) std::iter_swap(names.begin(), std::ranges::find(names, 0));
  Edges edges = shapes[shape % graph_shape_count()](n, random);
  for (auto& [from, to] : edges) {
    from = names[from];
    to = names[to];
  }
  std::erase_if(edges, [](const auto& edge) { return edge.first == edge.second; });
  return edges;
}

}  // namespace posattn

// Graphs and structural positions, against other ways to find them.
#include "posattn/tasks/structure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posattn {
namespace {

std::vector<Graph> graphs_of_all_kinds() {
  std::vector<Graph> graphs = {Graph(1),       Graph(5),          path_graph(9),    grid_graph(11),
                               grid_graph(16), cycle_graph(8, 1), cycle_graph(9, 2)};
  RandomStream random(5, Purpose::test_data, 0, 0);
  for (const int n : {2, 6, 13, 32}) {
    for (const float share : {0.1f, 0.3f, 0.7f, 1.0f}) {
      graphs.push_back(random_graph(random, n, share));
    }
  }
  return graphs;
}

// Floyd and Warshall.
std::vector<int32_t> distances_over_all_nodes(const Graph& graph) {
  const int n = graph.nodes, far = 1000;
  std::vector<int32_t> hops(graph.edges.size(), far);
  for (int i = 0; i < n; ++i) {
    hops[i * n + i] = 0;
    for (int j = 0; j < n; ++j) {
      if (graph.edge(i, j)) hops[i * n + j] = 1;
    }
  }
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        hops[i * n + j] = std::min(hops[i * n + j], hops[i * n + k] + hops[k * n + j]);
      }
    }
  }
  for (int32_t& hop : hops) hop = hop == far ? -1 : hop;
  return hops;
}

TEST(Graphs, HaveDistancesAsByAnotherAlgorithm) {
  for (const Graph& graph : graphs_of_all_kinds()) {
    EXPECT_EQ(hop_distances(graph), distances_over_all_nodes(graph));
  }
}

TEST(Graphs, OfFamiliesAreWhatTheirNamesSay) {
  const auto degrees = [](const Graph& graph) {
    std::vector<int> list;
    for (int i = 0; i < graph.nodes; ++i) list.push_back(graph.degree(i));
    std::ranges::sort(list);
    return list;
  };
  EXPECT_EQ(degrees(path_graph(5)), (std::vector{1, 1, 2, 2, 2}));
  EXPECT_EQ(degrees(grid_graph(9)), (std::vector{2, 2, 2, 2, 3, 3, 3, 3, 4}));
  EXPECT_EQ(degrees(grid_graph(5)), (std::vector{1, 2, 2, 2, 3}));  // three, then two
  EXPECT_EQ(grid_graph(12).edge_count(), 17);                       // 3 x 4
  for (const int n : {6, 7, 12}) {
    for (const int cycles : {1, 2}) {
      const Graph graph = cycle_graph(n, cycles);
      EXPECT_EQ(degrees(graph), std::vector<int>(n, 2));
      const std::vector<int32_t> hops = hop_distances(graph);
      const auto reached =
          std::count_if(hops.begin(), hops.begin() + n, [](int h) { return h >= 0; });
      EXPECT_EQ(reached, cycles == 1 ? n : n / 2);
    }
  }
  for (const int n : {1, 2, 3, 10, 16}) {
    for (const Graph& graph : {path_graph(n), grid_graph(n)}) {
      const std::vector<int32_t> hops = hop_distances(graph);
      EXPECT_EQ(std::ranges::count(hops, -1), 0);
    }
  }
}

TEST(Graphs, KeepTheirFormWithOtherLabels) {
  RandomStream random(6, Purpose::test_data, 0, 0);
  const Graph path = path_graph(7);
  std::vector<int> first_neighbours(7);  // how often each pair with node 0 is an edge
  for (int draw = 0; draw < 700; ++draw) {
    const Graph other = relabelled(random, path);
    EXPECT_EQ(other.edge_count(), 6);
    std::vector<int32_t> a = hop_distances(path), b = hop_distances(other);
    std::ranges::sort(a);
    std::ranges::sort(b);
    EXPECT_EQ(a, b);
    for (int j = 0; j < 7; ++j) first_neighbours[j] += other.edge(0, j) ? 1 : 0;
  }
  for (int j = 1; j < 7; ++j) EXPECT_NEAR(first_neighbours[j], 200, 60);  // 12 of 42 pairs
}

// (D^-1 A)^t [i, j]: the mean over the neighbours k of i of (D^-1 A)^(t - 1) [k, j].
double walk_by_definition(const Graph& graph, int steps, int i, int j) {
  if (steps == 0) return i == j ? 1 : 0;
  if (graph.degree(i) == 0) return i == j ? 1 : 0;
  double sum = 0;
  for (int k = 0; k < graph.nodes; ++k) {
    if (graph.edge(i, k)) sum += walk_by_definition(graph, steps - 1, k, j);
  }
  return sum / graph.degree(i);
}

TEST(Walks, AreProbabilitiesOfAWalksPlace) {
  for (const Graph& graph : graphs_of_all_kinds()) {
    const int n = graph.nodes;
    const std::vector<double> walks = walk_probabilities(graph, 5);
    for (size_t row = 0; row < walks.size(); row += n) {
      EXPECT_NEAR(std::accumulate(walks.begin() + row, walks.begin() + row + n, 0.0), 1, 1e-14);
    }
    if (n > 9) continue;
    for (int t = 1; t <= 3; ++t) {
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          EXPECT_NEAR(walks[((t - 1) * n + i) * n + j], walk_by_definition(graph, t, i, j), 1e-15);
        }
      }
    }
  }
}

std::vector<double> laplacian(const Graph& graph) {
  const int n = graph.nodes;
  std::vector<double> matrix(graph.edges.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i == j && graph.degree(i) > 0) matrix[i * n + j] = 1;
      if (graph.edge(i, j)) matrix[i * n + j] = -1 / std::sqrt(graph.degree(i) * graph.degree(j));
    }
  }
  return matrix;
}

TEST(Eigenvectors, OfLaplaciansAreOrthonormalAndSatisfyTheirEquation) {
  for (const Graph& graph : graphs_of_all_kinds()) {
    const int n = graph.nodes;
    const std::vector<double> matrix = laplacian(graph);
    const Eigenvectors found = symmetric_eigenvectors(matrix, n);
    EXPECT_TRUE(std::ranges::is_sorted(found.values));
    EXPECT_NEAR(found.values[0], 0, 1e-14);  // the square roots of the degrees
    for (int k = 0; k < n; ++k) {
      const double* vector = found.vectors.data() + k * n;
      for (int l = 0; l < n; ++l) {
        const double product =
            std::inner_product(vector, vector + n, found.vectors.begin() + l * n, 0.0);
        EXPECT_NEAR(product, k == l ? 1 : 0, 1e-13);
      }
      for (int i = 0; i < n; ++i) {
        const double image = std::inner_product(vector, vector + n, matrix.begin() + i * n, 0.0);
        EXPECT_NEAR(image, found.values[k] * vector[i], 1e-13);
      }
    }
  }
}

// Of a path of three nodes: eigenvalues 0, 1, 2 with (1, sqrt 2, 1) / 2, (1, 0, -1) / sqrt 2 and
// (1, -sqrt 2, 1) / 2. Of a complete graph all eigenvalues but the first are n / (n - 1): the mean
// product is that of the projection I - 1 / n, by n - 1.
TEST(Laplacian, ProductsAreThoseOfKnownGraphs) {
  const double root = std::sqrt(2);
  const double first[] = {1 / root, 0, -1 / root}, second[] = {0.5, -root / 2, 0.5};
  const std::vector<double> path = laplacian_products(path_graph(3), 3);
  const std::vector<double> complete = [] {
    RandomStream random(1, Purpose::test_data, 0, 0);
    return laplacian_products(random_graph(random, 5, 1), 2);
  }();
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      const double expected = 5 * ((i == j ? 1 : 0) - 0.2) / 4;
      EXPECT_NEAR(complete[i * 5 + j], expected, 1e-13);
      EXPECT_NEAR(complete[25 + i * 5 + j], expected, 1e-13);
      if (i > 2 || j > 2) continue;
      EXPECT_NEAR(path[i * 3 + j], 3 * first[i] * first[j], 1e-14);
      EXPECT_NEAR(path[9 + i * 3 + j], 3 * second[i] * second[j], 1e-14);
      EXPECT_EQ(path[18 + i * 3 + j], 0);  // there is no fourth
    }
  }
}

// The columns of pairs, [structure][pair][column].
struct Columns {
  std::vector<int32_t> classes;
  std::vector<float> numbers;
  Columns(const Structure& structure, const Graph& graph, TaskShape& shape) {
    add_pairs(structure, shape);
    classes.resize(shape.pair_class_count());
    numbers.resize(shape.pair_number_count());
    fill_pairs(structure, graph,
               {.values = {},
                .tokens = {},
                .targets = {},
                .labels = {},
                .pairs = numbers,
                .pair_classes = classes});
  }
};

TEST(Structure, PairsHoldWhatItsNameSays) {
  const TaskParameter names = structure_parameters()[0];
  const Graph graph = path_graph(6);
  for (int value = 0; value < static_cast<int>(names.words.size()); ++value) {
    SCOPED_TRACE(names.words[value]);
    const int values[] = {value, 3};
    TaskShape shape{.real_nodes = 6};
    const Columns columns(structure_of(values), graph, shape);
    const bool edges = names.words[value].starts_with("edges");
    const bool walks = names.words[value].ends_with("walks");
    EXPECT_EQ(shape.pair_classes, edges ? 2 : names.words[value] == "distances" ? 5 : 0);
    EXPECT_EQ(shape.pair_columns, walks || names.words[value].ends_with("laplacian") ? 3 : 0);
    const std::vector<double> expected =
        walks ? walk_probabilities(graph, 3) : laplacian_products(graph, 3);
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < 6; ++j) {
        const int hops = std::abs(i - j), pair = i * 6 + j;
        if (shape.pair_classes > 0) {
          EXPECT_EQ(columns.classes[pair], edges       ? (hops == 1 ? 1 : 0)
                                           : hops == 0 ? 4
                                           : hops > 3  ? 0
                                                       : hops);
        }
        for (int c = 0; c < shape.pair_columns; ++c) {
          EXPECT_EQ(columns.numbers[pair * 3 + c], static_cast<float>(expected[c * 36 + pair]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace posattn

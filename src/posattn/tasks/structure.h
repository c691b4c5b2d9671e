// Structural positions: what a pair of nodes holds of a sample's graph. They follow from the graph
// alone, so attention that reads them sees no value and no label of a node.
#pragma once

#include <span>
#include <vector>

#include "posattn/tasks/graph.h"
#include "posattn/tasks/task.h"

namespace posattn {

// edges:      class 1 for an edge, else 0
// distances:  class d for d = 1, ..., size hops, size + 1 for the node itself, else 0
// walks:      numbers (D^-1 A)^t [i, j] for t = 1, ..., size: where a random walk from i is after t
//             steps. A walk stays at a node without edges.
// laplacian:  numbers n p_k[i] p_k[j] for k = 1, ..., size, where p_k are unit eigenvectors of
//             I - D^-1/2 A D^-1/2 by ascending eigenvalues, without the first; 0 where k >= n.
//             Eigenvectors of one eigenvalue share their mean product, whatever basis was found.
struct Structure {
  enum class Classes { none, edges, distances } classes = Classes::edges;
  enum class Numbers { none, walks, laplacian } numbers = Numbers::none;
  int size = 4;
};

// The parameters "structure" and "size" of a task, and what their values mean.
std::vector<TaskParameter> structure_parameters();
Structure structure_of(std::span<const int> values);

void add_pairs(const Structure& structure, TaskShape& shape);
void fill_pairs(const Structure& structure, const Graph& graph, const SampleRoom& room);

// [size, nodes, nodes]
std::vector<double> walk_probabilities(const Graph& graph, int size);
std::vector<double> laplacian_products(const Graph& graph, int size);

// All eigenvalues of a symmetric matrix [n, n] in ascending order, and unit eigenvectors as rows.
struct Eigenvectors {
  std::vector<double> values, vectors;
};
Eigenvectors symmetric_eigenvectors(std::vector<double> matrix, int n);

}  // namespace posattn

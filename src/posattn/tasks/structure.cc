#include "posattn/tasks/structure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posattn {
namespace {

struct NamedStructure {
  const char* name;
  Structure::Classes classes;
  Structure::Numbers numbers;
};

constexpr NamedStructure named_structures[] = {
    {"edges", Structure::Classes::edges, Structure::Numbers::none},
    {"distances", Structure::Classes::distances, Structure::Numbers::none},
    {"walks", Structure::Classes::none, Structure::Numbers::walks},
    {"laplacian", Structure::Classes::none, Structure::Numbers::laplacian},
    {"edges+walks", Structure::Classes::edges, Structure::Numbers::walks},
    {"edges+laplacian", Structure::Classes::edges, Structure::Numbers::laplacian},
};

int32_t class_of(const Structure& structure, int32_t hops) {
  if (structure.classes == Structure::Classes::edges) return hops == 1 ? 1 : 0;
  if (hops == 0) return structure.size + 1;
  return hops > structure.size ? 0 : std::max(hops, 0);
}

// Neighbours, or the node itself where it has none, and how many they are.
std::vector<double> walk_matrix(const Graph& graph, std::vector<double>& degree) {
  const int n = graph.nodes;
  std::vector<double> matrix(graph.edges.begin(), graph.edges.end());
  for (int i = 0; i < n; ++i) {
    degree.push_back(graph.degree(i));
    if (degree[i] == 0) matrix[static_cast<size_t>(i) * n + i] = degree[i] = 1;
  }
  return matrix;
}

}  // namespace

std::vector<TaskParameter> structure_parameters() {
  std::vector<TaskParameter> parameters = {
      {.name = "structure", .description = "what a pair of nodes holds of the graph"},
      {.name = "size",
       .description = "hops that are told apart, steps of walks, or eigenvectors",
       .standard = 4,
       .least = 1,
       .most = 64}};
  for (const NamedStructure& row : named_structures) parameters[0].words.emplace_back(row.name);
  return parameters;
}

Structure structure_of(std::span<const int> values) {
  const NamedStructure& row = named_structures[values[0]];
  return {row.classes, row.numbers, values[1]};
}

void add_pairs(const Structure& structure, TaskShape& shape) {
  if (structure.classes == Structure::Classes::edges) shape.pair_classes = 2;
  if (structure.classes == Structure::Classes::distances) shape.pair_classes = structure.size + 2;
  if (structure.numbers != Structure::Numbers::none) shape.pair_columns = structure.size;
}

void fill_pairs(const Structure& structure, const Graph& graph, const SampleRoom& room) {
  if (structure.classes == Structure::Classes::edges) {
    std::ranges::copy(graph.edges, room.pair_classes.begin());
  } else if (structure.classes == Structure::Classes::distances) {
    std::ranges::transform(hop_distances(graph), room.pair_classes.begin(),
                           [&](int32_t hops) { return class_of(structure, hops); });
  }
  if (structure.numbers == Structure::Numbers::none) return;
  const std::vector<double> numbers = structure.numbers == Structure::Numbers::walks
                                          ? walk_probabilities(graph, structure.size)
                                          : laplacian_products(graph, structure.size);
  const size_t pairs = graph.edges.size();
  for (size_t at = 0; at < numbers.size(); ++at) {
    room.pairs[at % pairs * structure.size + at / pairs] = static_cast<float>(numbers[at]);
  }
}

std::vector<double> walk_probabilities(const Graph& graph, int size) {
  const int n = graph.nodes;
  std::vector<double> degree;
  std::vector<double> step = walk_matrix(graph, degree);
  for (size_t at = 0; at < step.size(); ++at) step[at] /= degree[at / n];
  std::vector<double> walks = step;
  walks.resize(step.size() * size);
  for (int t = 1; t < size; ++t) {
    const double* before = walks.data() + (t - 1) * step.size();
    double* after = walks.data() + t * step.size();
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) {
        for (int j = 0; j < n; ++j) after[i * n + j] += step[i * n + k] * before[k * n + j];
      }
    }
  }
  return walks;
}

std::vector<double> laplacian_products(const Graph& graph, int size) {
  const int n = graph.nodes;
  std::vector<double> degree;
  std::vector<double> matrix = walk_matrix(graph, degree);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double& entry = matrix[i * n + j];
      entry = (i == j ? 1 : 0) - entry / std::sqrt(degree[i] * degree[j]);
    }
  }
  const Eigenvectors found = symmetric_eigenvectors(std::move(matrix), n);
  std::vector<double> products(graph.edges.size() * size);
  for (int k = 1; k <= size && k < n; ++k) {
    // Those of the same eigenvalue stand next to each other.
    const auto same = [&](double value) { return std::abs(value - found.values[k]) < 1e-9; };
    const auto first = std::ranges::find_if(found.values, same) - found.values.begin();
    const auto count = std::ranges::count_if(found.values, same);
    for (auto l = first; l < first + count; ++l) {
      const double* vector = found.vectors.data() + l * n;
      double* into = products.data() + (k - 1) * graph.edges.size();
      for (int i = 0; i < n; ++i) {
        const double factor = n * vector[i] / static_cast<double>(count);
        for (int j = 0; j < n; ++j) into[i * n + j] += factor * vector[j];
      }
    }
  }
  return products;
}

// Jacobi: rotations of two rows and columns p and q, each of which makes the entry (p, q) zero,
// until no entry off the diagonal is left. With t = tan of the angle,
//   t^2 + 2 t theta - 1 = 0,  theta = (a_qq - a_pp) / (2 a_pq).
// Ours and not LAPACK's, whose roundings differ from machine to machine: samples should not.
Eigenvectors symmetric_eigenvectors(std::vector<double> a, int n) {
  std::vector<double> rows(a.size());
  for (int i = 0; i < n; ++i) rows[i * n + i] = 1;
  const auto rotate = [](double& x, double& y, double c, double s) {
    const double turned = c * x - s * y;
    y = s * x + c * y;
    x = turned;
  };
  constexpr int most_sweeps = 60;  // about ten are enough
  bool changed = true;
  for (int sweep = 0; sweep < most_sweeps && changed; ++sweep) {
    changed = false;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        if (std::abs(a[p * n + q]) < 1e-15) continue;
        changed = true;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < n; ++k) rotate(a[k * n + p], a[k * n + q], c, s);
        for (int k = 0; k < n; ++k) {
          rotate(a[p * n + k], a[q * n + k], c, s);
          rotate(rows[p * n + k], rows[q * n + k], c, s);
        }
        a[p * n + q] = a[q * n + p] = 0;  // in exact arithmetic they are
      }
    }
  }
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return a[i * n + i]; });
  Eigenvectors found;
  for (const int i : order) {
    found.values.push_back(a[i * n + i]);
    found.vectors.insert(found.vectors.end(), rows.begin() + i * n, rows.begin() + (i + 1) * n);
  }
  return found;
}

}  // namespace posattn

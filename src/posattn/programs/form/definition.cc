#include "posattn/programs/form/definition.h"

#include <algorithm>

#include "posattn/tasks/k_hop.h"

namespace posattn {
namespace {

using Numbers = std::vector<double>;
using Input = std::span<const double>;

// Letters 1 .. q and k, the same everywhere; 0 where a hop leads nowhere.
Numbers k_hops(int n, Input input) {
  std::vector<int32_t> word(n);
  for (int i = 0; i < n; ++i) word[i] = static_cast<int32_t>(input[2 * i]);
  Numbers answer;
  for (const int32_t letter : k_hop(word, static_cast<int>(input[1]))) {
    answer.push_back(std::max<int32_t>(0, letter));
  }
  return answer;
}

// Destinations and words: what was sent to each.
Numbers scattered(int n, Input input) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) answer[static_cast<int>(input[2 * i])] = input[2 * i + 1];
  return answer;
}

// Places and words: what stands at each one's place.
Numbers gathered(int n, Input input) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) answer[i] = input[2 * static_cast<int>(input[2 * i]) + 1];
  return answer;
}

// Successors: how many come after.
Numbers list_ranks(int n, Input next) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) {
    for (double at = next[i]; at >= 0; at = next[static_cast<int>(at)]) ++answer[i];
  }
  return answer;
}

Numbers sorted(int n, Input input) {
  Numbers answer(input.begin(), input.begin() + n);
  std::ranges::sort(answer);
  return answer;
}

// Distances from the nodes of `queue` along edges, n where none can be reached from. Row i has the
// edges that lead to i.
Numbers distances_from(std::vector<int> queue, int n, Input matrix) {
  Numbers distance(n, n);
  for (const int start : queue) distance[start] = 0;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int j = queue[next];
    for (int i = 0; i < n; ++i) {
      if (matrix[i * n + j] == 0 || distance[i] < n) continue;
      distance[i] = distance[j] + 1;
      queue.push_back(i);
    }
  }
  return distance;
}

Numbers breadth_first(int n, Input matrix) { return distances_from({0}, n, matrix); }

// The smallest index in the component of each.
Numbers components(int n, Input matrix) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) {
    const Numbers distance = distances_from({i}, n, matrix);
    answer[i] = static_cast<double>(
        std::ranges::find_if(distance, [&](double d) { return d < n; }) - distance.begin());
  }
  return answer;
}

// Columns [first, first + n) of inputs that have more: a matrix.
Numbers matrix_at(int first, int n, Input input) {
  const auto columns = static_cast<int>(input.size()) / n;
  Numbers matrix;
  for (int at = 0; at < n * n; ++at) matrix.push_back(input[at / n * columns + first + at % n]);
  return matrix;
}

// Those whose first column is 1.
std::vector<int> sources(int n, Input input) {
  std::vector<int> nodes;
  for (int i = 0; i < n; ++i) {
    if (input[i * (static_cast<int>(input.size()) / n)] == 1) nodes.push_back(i);
  }
  return nodes;
}

// A source and a row of edges each: the smallest neighbour that is nearer to a source, else itself.
Numbers parents(int n, Input input) {
  const Numbers matrix = matrix_at(1, n, input);
  const Numbers distance = distances_from(sources(n, input), n, matrix);
  Numbers parent(n);
  for (int i = 0; i < n; ++i) {
    parent[i] = i;
    for (int j = n - 1; j >= 0; --j) {
      if (matrix[i * n + j] == 1 && distance[j] < distance[i]) parent[i] = j;
    }
  }
  return parent;
}

// c_ij = min over k of a_ik + b_kj: the lengths of the shortest ways of two steps.
Numbers two_steps(int n, const Numbers& a, const Numbers& b) {
  Numbers c(a.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double least = a[i * n] + b[j];
      for (int k = 1; k < n; ++k) least = std::min(least, a[i * n + k] + b[k * n + j]);
      c[i * n + j] = least;
    }
  }
  return c;
}

// Lengths of edges: those of the shortest ways of exactly m edges, where m is the first power of
// two that is not below n - 1. With zeros on the diagonal all shorter ways are among them.
Numbers all_pairs(int n, Input lengths) {
  const Numbers edges(lengths.begin(), lengths.end());
  Numbers answer = edges;
  int most = 1;
  while (most < n - 1) most *= 2;
  for (int step = 1; step < most; ++step) answer = two_steps(n, answer, edges);
  return answer;
}

// A source, a row of edges and one of their lengths each: the shortest way of up to n - 1 edges,
// where a missing edge is 64 long and so is the way to a node that is no source.
Numbers bellman_ford(int n, Input input) {
  constexpr double far = 64;
  const Numbers is_edge = matrix_at(1, n, input), length = matrix_at(1 + n, n, input);
  Numbers edges(is_edge.size()), ways(edges.size(), 1e30), answer(n, far);
  for (int i = 0; i < n; ++i) ways[i * n + i] = 0;
  for (int at = 0; at < n * n; ++at) {
    edges[at] = is_edge[at] == 1 ? length[at] : far;
    if (at % (n + 1) == 0) edges[at] = std::min(edges[at], 0.0);  // or no step
  }
  for (int step = 1; step < n; ++step) ways = two_steps(n, ways, edges);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) answer[i] = std::min(answer[i], ways[i * n + j] + far);
    for (const int j : sources(n, input)) answer[i] = std::min(answer[i], ways[i * n + j]);
  }
  return answer;
}

// Successors of a permutation: the smallest of each cycle, and how many cycles there are.
Numbers cycles(int n, Input next) {
  Numbers answer(2 * n);
  int count = 0;
  for (int i = 0; i < n; ++i) {
    int least = i;
    for (int at = static_cast<int>(next[i]); at != i; at = static_cast<int>(next[at])) {
      least = std::min(least, at);
    }
    answer[2 * i] = least;
    if (least == i) ++count;
  }
  for (int i = 0; i < n; ++i) answer[2 * i + 1] = count;
  return answer;
}

// Binary digits, the highest first: whether the number of each prefix is divisible by 3.
Numbers divisible_by_three(int n, Input digits) {
  Numbers answer;
  int rest = 0;
  for (int i = 0; i < n; ++i) {
    rest = (2 * rest + static_cast<int>(digits[i])) % 3;
    answer.push_back(rest == 0 ? 1 : 0);
  }
  return answer;
}

}  // namespace

const std::vector<Definition>& definitions() {
  static const std::vector<Definition> all = {
      {"k-hop", {2}, {1}, k_hops},
      {"scatter", {2}, {1}, scattered},
      {"gather", {2}, {1}, gathered},
      {"list-ranking", {1}, {1}, list_ranks},
      {"radix-sort", {1}, {1}, sorted},
      {"breadth-first", {0, 1}, {1}, breadth_first},
      {"components", {0, 1}, {1}, components},
      {"bfs-tree", {1, 1}, {1}, parents},
      {"all-pairs", {0, 1}, {0, 1}, all_pairs},
      {"bellman-ford", {1, 2}, {1}, bellman_ford},
      {"cycles", {1}, {2}, cycles},
      {"divisible-by-three", {1}, {1}, divisible_by_three},
  };
  return all;
}

const Definition* find_definition(std::string_view name) {
  const auto found = std::ranges::find(definitions(), name, &Definition::name);
  return found == definitions().end() ? nullptr : &*found;
}

}  // namespace posattn

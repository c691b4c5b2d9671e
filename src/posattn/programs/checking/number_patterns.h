// Rows of numbers with a pattern: ties, ends of the range, orders, magnitudes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

// A whole number from 0 to bound - 1.
inline int below(size_t bound, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<uint32_t>(bound)));
}

// The numbers that a row may hold.
struct NumberRange {
  double low = 0, high = 1;
  bool whole = false;
  std::span<const double> specials;  // numbers that matter to the program; they may lie outside

  // The nearest number that is allowed.
  double allowed(double x) const;
  double uniform(RandomStream& random) const;
  // An end, zero, a special number or one next to it; or any number.
  double special(RandomStream& random) const;
};

int number_pattern_count();

// `count` numbers of the pattern `pattern` mod number_pattern_count().
std::vector<double> patterned(int64_t pattern, int count, const NumberRange& range,
                              RandomStream& random);

// Graphs of the shapes that random draws practically never have: long paths, rings, stars, trees,
// graphs that fall apart. A network that stops some rounds early is wrong on a long path alone.
using Edges = std::vector<std::pair<int, int>>;

// How many shapes there are.
int graph_shape_count();

// A graph of n nodes of the shape `shape` mod graph_shape_count(). Nodes have their names in order,
// in reverse, or at random; a path starts at node 0 more often than elsewhere.
Edges drawn_graph(int shape, int n, RandomStream& random);

}  // namespace posattn

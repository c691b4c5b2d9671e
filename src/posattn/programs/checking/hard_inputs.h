// Inputs of a program on which wrong networks fail that are right on random ones: equal numbers,
// both ends of every range, sorted and nearly sorted orders, the program's own constants and their
// neighbours, special permutations, lists and graphs. All keep the program's types and promises.
#pragma once

#include "posattn/base/random.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/tasks/task.h"

namespace posattn {

class HardInputs {
 public:
  // The program must outlive this.
  explicit HardInputs(const StaticProgram& program);

  // One input [processors, inputs]. Consecutive indices take turns among the patterns. Real numbers
  // lie in the range, whole numbers in all of their type.
  void draw(RandomStream& random, const ValueRange& range, int64_t index,
            std::span<float> input) const;

 private:
  // Input columns that belong together: those of an array, or those of one promise.
  struct Group {
    int first = 0, count = 1;
    const PromisedInputs* promised = nullptr;
  };

  std::vector<double> drawn_group(const Group& group, int64_t index, const ValueRange& range,
                                  RandomStream& random) const;

  const StaticProgram& program_;
  std::vector<Group> groups_;
  std::vector<double> constants_;  // what the program compares its inputs with, as far as one sees
};

// A whole number from 0 to bound - 1.
inline int below(size_t bound, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<uint32_t>(bound)));
}

// Rows of numbers with a pattern: ties, ends of the range, orders, magnitudes. These are the
// numbers that a row may hold.
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

// A network's way through one input, step by step: what every node holds after each round of a
// compiled program or each layer of a trained model, and whom it heard. step_page.h shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace posattn {

// One number of every node.
struct WalkColumn {
  std::string name, type = {};
  // What the whole numbers 0, 1, ... stand for, where they stand for letters; else empty.
  std::vector<std::string> letters = {};
  int first_step = 0;  // it has no value before
  bool real_nodes_only = false;
};

// One bundle of arrows: what every node reads of which others.
struct WalkHearing {
  std::vector<std::string> names;  // of what is heard
  std::vector<int> columns;        // one for each name: what is read; empty: the whole state
  std::vector<std::vector<std::pair<int, double>>> reads;  // by node: (node, weight)
};

struct WalkStep {
  std::string title;               // "after round 3"
  std::vector<std::string> notes;  // what happens, in words
  std::vector<int> lines;          // of the program's text, from 1
  std::vector<WalkHearing> hears;
  std::vector<double> values;                    // [nodes, columns] after the step
  int followed_node = -1, followed_column = -1;  // who carries the value that is followed, or -1
};

struct Walk {
  std::string title;
  std::vector<std::string> facts;
  std::string node_noun;             // "processor"
  int nodes = 0, scratch_nodes = 0;  // the scratch nodes are the last of the nodes
  std::vector<WalkColumn> columns;
  std::vector<std::string> source;  // lines of the program's text; none for a trained model
  std::vector<WalkStep> steps;      // the first is the start
};

// What a page can hold and a reader follow. Throws Error(usage) above it.
constexpr int most_walk_nodes = 1024;
constexpr int64_t most_walk_numbers = 1'000'000;  // values and weights of all steps
void check_walk_size(int64_t nodes, int64_t numbers);

// "3, 1, 2", cut after a few; letters[0], letters[1], ... in place of 0, 1, ... as far as they go.
std::string short_list(std::span<const double> values,
                       const std::vector<std::string>& letters = {});

}  // namespace posattn

// A network's way through one input, step by step: what every node holds after each round of a
// compiled program or each layer of a trained model, and which nodes it read from.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/batch.h"
#include "posattn/programs/form/static_program.h"

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
struct WalkReading {
  std::string label;               // in the legend: "reads p", "head 0"
  int style = 0;                   // plot/line_style.h
  std::vector<std::string> names;  // of what is read
  std::vector<int> columns;        // one for each name: what is read; empty: the whole state
  std::vector<std::vector<std::pair<int, double>>> reads;  // by node: (node, weight)
};

struct WalkStep {
  std::string title;               // "after round 3"
  std::vector<std::string> notes;  // what happens, in words
  std::vector<int> lines;          // of the program's text, from 1
  std::vector<WalkReading> readings;
  std::vector<double> values;                    // [nodes, columns] after the step
  int followed_node = -1, followed_column = -1;  // who carries the value that is followed, or -1
  std::vector<std::string> kept = {};            // by node: what a comparator left there; or empty
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

// The way of one input through a trained model: the numbers of every node after each layer, and the
// attention that led there. Throws Error(usage) for a walk that is too large, else as check_batch
// does.
Walk network_walk(const Model& model, const Batch& one_sample);

// The way of one input through a parallel program: its words after every round, by the interpreter.
// `text` is the program's own, `input` [processors, inputs]. The characters of `letters` stand for
// 0, 1, ... in the first input, and in words with the same largest number that are no inputs.
// Throws Error(usage) for a walk that is too large.
Walk program_walk(const StaticProgram& program, const std::string& text,
                  std::span<const double> input, const std::string& letters = {});

// Notes at each step of the program's walk which layers of its compiled network carried it out, and
// the largest difference between their numbers and the program's words. Throws Error(data) for a
// network that cannot be the program's.
void compare_with_network(const Model& model, const StaticProgram& program,
                          std::span<const double> input, Walk& walk);

// A walk as one page of HTML that needs nothing else: no network, no other file.
std::string step_page(const Walk& walk);

}  // namespace posattn

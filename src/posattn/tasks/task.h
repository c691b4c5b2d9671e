// An algorithmic task: how a sample is drawn and what its exact answer is.
// A new task is one file that derives from Task and one line in task_list.inc; a program that uses
// the library registers its own with register_task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/tasks/loss.h"
#include "posattn/tasks/task_text.h"

namespace posattn {

// Where input values come from (paper, section 7): two uniforms in [low, high], sorted to (a, b),
// then every x_i uniform in [a, b]. With `exclude`, (a, b) is redrawn while it lies inside
// [excluded_low, excluded_high]: a test range must not fall back into the training range.
// Integers are drawn uniformly from [low, high) instead, with no sub-range and no rejection.
// With `decades` u_i uniform in [-decades, decades] and x_i is multiplied by 10^u_i.
struct ValueRange {
  float low = -2, high = 2;
  bool exclude = false;
  float excluded_low = -2, excluded_high = 2;
  bool integers = false;
  float decades = 0;
};

ValueRange training_range(double range, bool integers);
// [-range c, range c], for c > 1 rejecting what lies inside [-range, range].
ValueRange test_range(double range, double scale, bool integers);

// As in training, with `decades`. Throws Error(usage) where that makes no sense.
ValueRange mixed_range(double range, double decades, bool integers);

// Under which condition a sample is drawn. Training: the training range, x = 1. A test: x on one of
// the task's axes; on the axis "c" the range says all.
struct Sampling {
  ValueRange range = {};
  std::string_view axis = "c";
  double x = 1;
  bool is_test = false;  // not of training or validation
  int64_t listed = -1;   // which of Task::symbol_inputs; below 0: symbols are drawn
};

// The columns of a sample: numbers and tokens in, numbers or classes out.
struct TaskShape {
  int real_nodes = 0;              // of the network, scratch nodes left out
  int data_columns = 1;            // numbers of a node; may be 0 where nodes hold tokens
  int output_columns = 1;          // numbers of a node, or classes
  int vocabulary = 0;              // tokens that a node may hold; 0: numbers only
  int read_nodes = 0;              // whose outputs count: the first ones, below 0 the last; 0: all
  int pair_columns = 0;            // numbers of a pair of nodes, as the weight of an edge
  int pair_classes = 0;            // classes that a pair may have; 0: pairs have none
  bool tokens_and_values = false;  // a node holds a token and numbers; else one of the two
  int64_t input_count() const { return int64_t{1} * real_nodes * data_columns; }
  int64_t target_count() const { return int64_t{1} * real_nodes * output_columns; }
  bool has_pairs() const { return pair_columns > 0 || pair_classes > 0; }
  int64_t pair_number_count() const { return int64_t{1} * real_nodes * real_nodes * pair_columns; }
  int64_t pair_class_count() const {
    return pair_classes > 0 ? int64_t{1} * real_nodes * real_nodes : 0;
  }
  int nodes_read() const {
    return read_nodes > 0 ? read_nodes : read_nodes < 0 ? -read_nodes : real_nodes;
  }
  int first_read() const { return read_nodes < 0 ? real_nodes + read_nodes : 0; }
  bool reads(int node) const { return node >= first_read() && node < first_read() + nodes_read(); }
};

// Samples of one set that are made together: `samples` of them from number `first` on.
struct SampleBlock {
  uint64_t seed = 0;
  Purpose purpose = Purpose::train_data;
  uint32_t variant = 0;  // of the random key, with `first`, which goes on through the blocks
  uint32_t first = 0;
  int64_t samples = 0;
  int length = 0;
  Sampling sampling = {};
  SampleRoom room;  // of all of them, one after the other
};

// The model next to which a baseline is measured.
struct ComparedModel {
  int heads = 1;
  int length = 0;  // that it was trained on
};

struct SampleView {
  std::span<const float> values;               // [real_nodes, data_columns]
  std::span<const int32_t> tokens;             // [real_nodes]; empty without a vocabulary
  std::span<const float> pairs = {};           // [real_nodes, real_nodes, pair_columns]
  std::span<const int32_t> pair_classes = {};  // [real_nodes, real_nodes]
  ComparedModel model = {};
};

// A baseline is a predictor that is no network, such as the best one that knows only a part of the
// sample. Models are measured against it where the exact answer alone says too little, on the same
// test samples.
struct Baseline {
  std::string name;         // in flags, files and figures: "query-blind"
  std::string description;  // what it knows
  // Fills outputs [real_nodes, output_columns]; those that do not count may stay as they are.
  std::function<void(int length, const SampleView& sample, std::span<float> outputs)> predict;
};

// An axis that a task can be tested along.
struct TestAxis {
  std::string name;         // "c"
  std::string description;  // "values in [-range c, range c]"
  std::string words = {};   // along a figure's axis: "number of hops k"; empty: the name
  bool whole = false;       // x is a whole number
};

// What a task lets people choose in a task set, as regions=4: a whole number, or one of some words,
// whose value is then its place among them.
struct TaskParameter {
  std::string name;         // "regions"
  std::string description;  // "regions of a sample"
  int standard = 0;         // its value without a task set
  int least = 0, most = 0;
  std::vector<std::string> words = {};
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;

  virtual std::vector<TaskParameter> parameters() const { return {}; }
  // The same task with other values of its parameters, in their order. Name, loss, axes and the
  // names of baselines do not depend on them. Asked only where there are parameters.
  virtual std::unique_ptr<const Task> variant(std::span<const int> values) const;

  // Shapes for length n; the default is n nodes with one number in and one out.
  virtual TaskShape shape(int length) const;
  virtual int shortest_length() const { return 1; }
  // Whether samples of several lengths can share one model.
  virtual bool supports_variable_length() const { return true; }

  virtual Loss loss() const { return Loss::squared_error; }
  // Settings of a training run that suit the task better than the defaults, by their names; what
  // somebody names himself comes first.
  virtual std::vector<std::pair<std::string, std::string>> settings() const { return {}; }
  // How people write samples of this task and its answers; null: as numbers in a table.
  virtual const TaskText* text() const { return nullptr; }
  // What a model of texts writes, and is tested by; null: outputs are answers themselves.
  virtual const WrittenAnswers* written_answers() const { return nullptr; }
  // How it can be tested; the default is the value range alone. A task with an axis of its own
  // reads Sampling in make_sample.
  virtual std::vector<TestAxis> test_axes() const;

  // One sample; the default draws numbers and solves for them. A task of tokens, classes or pairs
  // has its own, and needs neither of the two functions below.
  virtual void make_sample(RandomStream& random, const Sampling& sampling, int length,
                           const SampleRoom& room) const;

  // How many different tokens its samples of length n have, where they can be listed; 0: they
  // cannot. make_sample then makes that of Sampling::listed, with the powers of two as numbers, so
  // that each sum of them is another number.
  virtual int64_t symbol_inputs(int /*length*/) const { return 0; }

  // Several samples; the default makes one after the other. A task that makes many at once says how
  // many that should be: a block begins at a multiple of it.
  virtual void make_samples(const SampleBlock& block) const;
  virtual int64_t block_samples() const { return 64; }

  // Fills one input row [real_nodes, data_columns]; the default draws every number from `range`.
  virtual void draw(RandomStream& random, const ValueRange& range, int length,
                    std::span<float> input) const;

  // The exact answer [real_nodes, output_columns], computed in double and rounded once. The default
  // throws Error(configuration): the task has no answer to numbers alone.
  virtual void solve(int length, std::span<const float> input, std::span<float> target) const;

  // Predictors to measure models against. The first is the one to beat: tables also show which
  // share of its error a model has.
  virtual std::vector<Baseline> baselines() const { return {}; }

  // Whether this output counts in loss and accuracy (path: only the strict upper triangle).
  virtual bool counts(int /*length*/, int /*node*/, int /*column*/) const { return true; }
};

// Draws all values by the rule of ValueRange (for tasks with a draw of their own).
void draw_values(RandomStream& random, const ValueRange& range, std::span<float> values);

// The built-in tasks, then the registered ones in their order.
const std::vector<const Task*>& tasks();
// With a set, "regions=4,...", its variant. Throws unknown_name(usage), and as variant_of.
const Task& find_task(std::string_view name, std::string_view set = {});
// For a name that stands in a file; throws unknown_name(data), which names the file.
const Task& task_named_in(const std::string& file, std::string_view name);

// The task with the parameters of a set, made when it is first asked for and kept: any thread may
// ask. Parameters that the set does not name keep their standard values. Throws
// Error(configuration), which lists the parameters, for one that does not exist or a value out of
// range.
const Task& variant_of(const Task& task, std::string_view set);
// "1 to 16", or the words of which it is one.
std::string values_of(const TaskParameter& parameter);
std::string value_text(const TaskParameter& parameter, int value);

// From now on the task works wherever a built-in one does. Before other threads ask for tasks.
// Throws Error(configuration) for a name that is taken, empty or not made of a-z, 0-9 and hyphens.
void register_task(std::unique_ptr<const Task> task);

}  // namespace posattn

// An algorithmic task: how a sample is drawn and what its exact answer is.
// A new task is one file that derives from Task and one line in task_list.inc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

// Where input values come from (paper, section 7): two uniforms in [low, high], sorted to (a, b),
// then every x_i uniform in [a, b]. With `exclude`, (a, b) is redrawn while it lies inside
// [excluded_low, excluded_high]: a test range must not fall back into the training range.
// Integers are drawn uniformly from [low, high) instead, with no sub-range and no rejection.
struct ValueRange {
  float low = -2, high = 2;
  bool exclude = false;
  float excluded_low = -2, excluded_high = 2;
  bool integers = false;
};

ValueRange training_range(double range, bool integers);
// [-range c, range c], for c > 1 rejecting what lies inside [-range, range].
ValueRange test_range(double range, double scale, bool integers);

struct TaskShape {
  int real_nodes = 0;  // of the network, scratch nodes left out
  int data_columns = 1;
  int output_columns = 1;
  int64_t input_count() const { return int64_t{1} * real_nodes * data_columns; }
  int64_t target_count() const { return int64_t{1} * real_nodes * output_columns; }
};

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;

  // Shapes for length n; the default is n nodes with one number in and one out.
  virtual TaskShape shape(int length) const;
  virtual int shortest_length() const { return 1; }
  // Whether samples of several lengths can share one model.
  virtual bool supports_variable_length() const { return true; }

  // Fills one input row [real_nodes, data_columns]; the default draws every number from `range`.
  virtual void draw(RandomStream& random, const ValueRange& range, int length, float* input) const;

  // The exact answer [real_nodes, output_columns], computed in double and rounded once.
  virtual void solve(int length, const float* input, float* target) const = 0;

  // Whether this output counts in loss and accuracy (path: only the strict upper triangle).
  virtual bool counts(int /*length*/, int /*node*/, int /*column*/) const { return true; }
};

// Draws `count` values by the rule of ValueRange (for tasks with a draw of their own).
void draw_values(RandomStream& random, const ValueRange& range, int64_t count, float* values);

const std::vector<const Task*>& tasks();
const Task& find_task(std::string_view name);  // throws unknown_name(usage)
// For a name that stands in a file; throws unknown_name(data), which names the file.
const Task& task_named_in(const std::string& file, std::string_view name);

}  // namespace posattn

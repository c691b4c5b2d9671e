// What can be measured of a model's outputs. A metric is one file that defines a Metric and one
// line in registry.cc: `evaluate` then has its column, and epoch records, the results database,
// experiments and figures carry it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "posattn/tasks/task.h"

namespace posattn {

// A network's outputs on samples of one length, what they should be, and the samples themselves.
struct Predictions {
  TaskShape shape;
  int64_t samples = 0;
  std::span<const float> outputs;        // [samples, real_nodes, output_columns]
  std::span<const float> targets = {};   // the same shape, where they are numbers
  std::span<const int32_t> labels = {};  // [samples, real_nodes], where they are classes
  std::span<const uint8_t> mask = {};    // [real_nodes, output_columns]; empty: all outputs count
  int length = 0;                        // the task's n
  std::span<const float> inputs = {};    // [samples, real_nodes, data_columns]
  std::span<const int32_t> tokens = {};  // [samples, real_nodes], where there is a vocabulary
  std::span<const float> pairs = {};     // [samples, real_nodes, real_nodes, pair_columns]
  std::span<const int32_t> pair_classes = {};  // [samples, real_nodes, real_nodes]

  bool counts(int64_t output_of_sample) const {
    return mask.empty() || mask[static_cast<size_t>(output_of_sample)] != 0;
  }
};

// A sum over samples and what to divide it by, so that sets of different lengths can be added up.
struct MetricSum {
  double sum = 0;
  int64_t count = 0;
  double mean() const;  // NaN when nothing was counted
  MetricSum& operator+=(const MetricSum& other);
};

enum class Better { lower, higher };

struct Metric {
  std::string_view name;     // in files: "mse"
  std::string_view heading;  // over a table's column: "MSE"
  std::string_view words;    // along a figure's axis: "mean squared error"
  std::string_view note;     // a sentence that explains it
  Better better = Better::lower;
  // The values: from 0 to `greatest`, shown on a logarithmic axis or (where false) one that has
  // both ends.
  double greatest = std::numeric_limits<double>::infinity();
  bool logarithmic = true;
  bool percent = false;             // how tables show a value
  Loss loss = Loss::squared_error;  // of tasks with this loss, whose targets it can read
  // It is that loss: only such a metric is known of training samples too.
  bool is_loss = false;

  // It measures what a model writes (answer_errors), not its outputs. Tests of tasks with written
  // answers have such metrics and no others.
  bool of_answers = false;
  // Training alone measures it (training/hints.h).
  bool of_training = false;

  // Either it is measured,
  MetricSum (*measure)(const Predictions&) = nullptr;
  // or it follows, at each x of one axis of tests or of all, from the value of another metric: such
  // a value is computed where it is read, never recorded.
  std::string_view derived_from = {}, derived_on = {};  // a metric's name; an axis' name, or all
  double (*derive)(double value, double x) = nullptr;

  bool is_derived() const { return derive != nullptr; }
  bool exists_on(std::string_view axis) const { return derived_on.empty() || axis == derived_on; }
  // What a run that diverged counts as: in an order it is the last.
  double worst() const { return better == Better::lower ? greatest : 0; }
};

// In the order of tables.
const std::vector<const Metric*>& metrics();
const Metric* known_metric(std::string_view name);  // null for none of this name
const Metric& find_metric(std::string_view name);   // throws unknown_name(usage)

// What models with this loss are trained on. Throws Error(configuration) where no metric is it.
const Metric& training_loss(Loss loss = Loss::squared_error);

// The class that a node's scores decide on; -1 where no class has a higher score than every other:
// two are equal, or one is NaN.
inline int32_t decided_class(std::span<const float> scores) {
  const auto best = std::ranges::max_element(scores);
  for (auto other = scores.begin(); other != scores.end(); ++other) {
    if (other != best && !(*other < *best)) return -1;
  }
  return static_cast<int32_t>(best - scores.begin());
}

}  // namespace posattn

// A way of testing a model: fresh samples that depend on one number x. An axis is one file that
// defines a EvaluationAxis and one line in registry.cc; rows of measurements name it and x.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

struct EvaluationRequest;

struct TestSamples {
  std::vector<Dataset> sets;  // one per length
  bool by_length = false;     // the lengths are worth telling apart
};

struct EvaluationAxis {
  std::string_view name;     // in rows and tables: "c"
  std::string_view words;    // beside a figure's axis
  std::string_view plural;   // flag and list of `evaluate`: "scales"
  std::string_view help;     // of the flag
  bool logarithmic = false;  // in figures, to base 2
  // Values as a user writes them; throws Error(usage) that names the flag.
  std::vector<double> (*parse)(std::string_view text, std::string_view flag) = nullptr;
  // Throws Error(data) where the model cannot be tested at x.
  TestSamples (*samples)(const EvaluationRequest& request, double x) = nullptr;

  std::string flag() const { return "--" + std::string(plural); }
  // Of `train`: the values at which a run is tested.
  std::string setting() const { return "test-" + std::string(plural); }
};

const std::vector<const EvaluationAxis*>& evaluation_axes();
const EvaluationAxis& find_evaluation_axis(std::string_view name);  // throws unknown_name(usage)

// The task's n that the model was made for. A file without our metadata may not say; most tasks
// have one node per number.
int length_of(const Model& model);

// Whether a model gives meaningful outputs for samples of so many real nodes. A model with rows of
// its own for every position does so at its own length alone.
bool evaluates_at_length(const ModelSpec& spec, int real_nodes);

// Throws Error(data) where a model that was trained on these lengths cannot be tested at `length`.
struct TrainedLengths {
  int longest = 0;
  bool and_below = false;
};
void check_test_length(const ModelSpec& spec, const Task& task, TrainedLengths trained, int length);

}  // namespace posattn

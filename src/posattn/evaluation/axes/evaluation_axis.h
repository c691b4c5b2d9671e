// A way of testing a model: fresh samples that depend on one number x; rows of measurements name
// the axis and x. One that suits many tasks is a file that defines an EvaluationAxis and a line in
// registry.cc; one that a task states itself (Task::test_axes) needs nothing here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

struct EvaluationRequest;

struct TestSamples {
  std::vector<Dataset> sets;  // one per length
  bool by_length = false;     // the lengths are worth telling apart
};

struct EvaluationAxis {
  std::string name;          // in rows and tables: "c"
  std::string words;         // along a figure's axis
  std::string plural;        // flag and list of `evaluate`: "scales"
  std::string help;          // of the flag
  bool logarithmic = false;  // in figures, to base 2
  bool whole = false;        // x is a whole number
  bool from_zero = false;    // x may be 0
  bool stated = false;       // by tasks (Task::test_axes), which make the samples
  // Values as a user writes them; throws Error(usage) that names the flag.
  std::vector<double> (*parse)(std::string_view text, std::string_view flag) = nullptr;
  // Throws Error(data) where the model cannot be tested at x.
  TestSamples (*samples)(const EvaluationRequest& request, double x) = nullptr;
  // The model as it is tested at x, where it is not the one that was trained. Throws as above.
  ModelSpec (*model)(const ModelSpec& spec, double x) = nullptr;

  std::string flag() const { return "--" + plural; }
  // The setting of `train` for the values at which a run is tested.
  std::string setting() const { return "test-" + plural; }
  std::string singular() const { return plural.substr(0, plural.size() - 1); }
};

const std::vector<const EvaluationAxis*>& evaluation_axes();
const EvaluationAxis& find_evaluation_axis(std::string_view name);  // throws unknown_name(usage)
// One of evaluation_axes(), or the axis that tasks state by this name (the first one that does says
// how it is shown).
EvaluationAxis axis_named(std::string_view name);

// Values on an axis, as a user writes them: "share=0.1,0.5". Throws Error(usage) that names the
// flag.
struct AxisValues {
  EvaluationAxis axis;
  std::vector<double> values;
};
AxisValues parse_axis_values(std::string_view text, std::string_view flag);
// Several of them, "k=0..3;letters=0,1"; none in an empty text. An axis may stand there once.
std::vector<AxisValues> parse_several_axes(std::string_view text, std::string_view flag);

bool states_axis(const Task& task, std::string_view axis);
// Throws Error(data) that names the axes which the task states.
void check_states_axis(const Task& task, std::string_view axis);

// Throws Error(data) for a task that does not draw its numbers by the rule of ValueRange: mixed
// scales would not change its samples.
void check_mixed_scales(const Task& task, int length);

// Samples at x on the request's axis, with values in `range`. A model trained on several lengths
// gets all of them in equal shares.
TestSamples samples_on_axis(const EvaluationRequest& request, double x, const ValueRange& range);
// The same, where the axis is one that the request's task states.
TestSamples stated_samples(const EvaluationRequest& request, double x, const ValueRange& range);

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

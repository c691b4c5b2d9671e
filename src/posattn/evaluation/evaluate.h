// A model against fresh test sets along one axis, such as the scale c of their values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/model/network.h"
#include "posattn/tasks/task.h"

namespace posattn {

struct EvaluationRequest {
  const Model* model = nullptr;
  const Task* task = nullptr;
  const EvaluationAxis* axis = evaluation_axes().front();  // the paper's: the scale c
  std::vector<double> values = {1};                        // on the axis
  int64_t samples = 1000;
  uint64_t seed = 0;
  Purpose purpose = Purpose::evaluation_data;
  int threads = 1;
  // A network of the model's spec that takes the place of the CPU engine. Samples of other lengths
  // than the model's still go to the CPU engine.
  ForwardPass* network = nullptr;
  bool baselines = false;  // measure those of the task too
};

// The samples of one length among those of a test.
struct LengthPart {
  int length = 0;
  int64_t samples = 0;
  std::vector<Measurement> rows;  // at the x of the test
};

// What a test at one x tells besides its rows.
struct TestDetails {
  double x = 0;
  std::vector<double> mse_per_node;         // NaN for a node of which no output counts
  std::vector<LengthPart> per_length = {};  // only where the test has several lengths
};

// A baseline of the task on the same samples.
struct BaselineRows {
  std::string name;
  std::vector<Measurement> rows;  // every measured metric at every x
};

struct Evaluation {
  std::vector<Measurement> rows;             // every measured metric at every x
  std::vector<TestDetails> details;          // one per x, in the order asked for
  std::vector<BaselineRows> baselines = {};  // where they were asked for
};

// Where a test has several lengths its values are means over samples, whatever their length. (The
// published figures for variable length are sums over the batches of a test set, one batch per
// length.) Throws Error(data) when the model's shapes are not those of the task at the model's
// length, or the model cannot be tested at one of the values.
Evaluation evaluate(const EvaluationRequest& request);

// Throws Error(data) when the model's shapes are not those of the task at the model's length.
void check_shapes(const Model& model, const Task& task);

// A task's baselines (tasks/task.h) are measured as models are: on the same samples, by the same
// metrics. The baseline of this name among those that the task offers and `more`. Throws
// unknown_name(usage), which names them.
Baseline find_baseline(const Task& task, std::string_view name, std::vector<Baseline> more = {});

// Every metric of the task at x of the axis, next to this model.
std::vector<Measurement> baseline_rows(const Baseline& baseline, const Task& task,
                                       const TestSamples& tests, const std::string& axis, double x,
                                       const ComparedModel& model = {});

}  // namespace posattn

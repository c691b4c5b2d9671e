// A model against fresh test sets of one or more scales c: values in [-range c, range c], where
// range is what it was trained on (for c > 1 nothing that lies inside the training range).
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/tasks/task.h"

namespace posattn {

struct LengthResult {
  int length = 0;
  int64_t samples = 0;
  double mse = 0, accuracy = 0;
};

struct ScaleResult {
  double c = 1;
  double mse = 0;
  double mse_over_c2 = 0;  // constant over c for a model that scales with its input
  double accuracy = 0;     // share of samples with every output within 0.1 + 0.1 |target|
  std::vector<double> mse_per_node = {};      // NaN for a node of which no output counts
  std::vector<LengthResult> per_length = {};  // only for models trained on several lengths
};

struct EvaluationRequest {
  const Model* model = nullptr;
  const Task* task = nullptr;
  std::vector<double> scales = {1};
  int64_t samples = 1000;
  uint64_t seed = 0;
  Purpose purpose = Purpose::evaluation_data;
  int threads = 1;
};

// One result per scale, in the order asked for. A model trained on several lengths gets all of them
// in equal shares, and its errors are means over samples, whatever their length. (The published
// figures for variable length are sums over the batches of a test set, one batch per length.)
// Throws Error(data) when the model's shapes are not those of the task at the model's length.
std::vector<ScaleResult> evaluate(const EvaluationRequest& request);

}  // namespace posattn

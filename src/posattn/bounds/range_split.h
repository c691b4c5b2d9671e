// The error of a network on scaled inputs, split exactly. Let f_b be the network, f_0 the same
// without its biases, y a task whose answers scale with the input, and x samples as in training:
//   f_b(c x) - y(c x) = c (f_0(x) - y(x)) + g_c(x),   g_c(x) = c (f_(b/c)(x) - f_0(x))
// the error of the weights, which grows as c, and what biases add, which stays bounded
// (docs/bounds-range.md). Tokens and pairs of x are kept in c x. Hence
//   MSE(c) = c^2 MSE of f_(b/c) at 1 = c^2 MSE of f_0 at 1 + what biases change.
// Of a model whose attention sees the scale there is no such split, but f_b(c x) is c times the
// output for x of the model with cooled attention (scale_law.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/task.h"

namespace posattn::bounds {

struct RangeRequest {
  const Model* model = nullptr;
  const Task* task = nullptr;
  std::vector<double> scales = {1};
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 1;
};

struct RangePoint {
  double c = 1;
  double error = 0;         // mean squared error on c x: c^2 times that on x of f_(b/c), or cooled
  double measured = 0;      // the same, on c x itself
  double from_weights = 0;  // c^2 times that of f_0 on x
  double from_biases = 0;   // the rest; negative where biases correct the weights
  double bias_output = 0;   // root mean square of g_c
  // The error on the samples that `evaluate` draws at c, and what follows for it from `error`:
  // values for c > 1 that leave the training range (docs/bounds-range.md, Corollary 5). NaN where
  // those samples have another law, as whole numbers do.
  double tested = NAN, predicted = NAN;
};

struct RangeSplit {
  std::vector<RangePoint> points;  // one per scale, in their order
  // The limit of error / c^2: MSE of f_0 on x, or of a cooled model with attention that is as cold
  // as float allows, which reads the nodes of the largest scores.
  double without_biases = 0;
  bool cooled = false;
  // The largest |f_b(c x) - c f_(b/c)(x)|, or cooled, as a share of the largest |f_b(c x)|, over
  // all scales: by how much the identity is missed in float.
  double deviation = 0;
};

// On the samples that `evaluate` draws at c = 1, so that nothing but c differs between two points.
// Throws Error(configuration) where the identity does not hold for the model, or the task's answers
// do not scale.
RangeSplit split_range(const RangeRequest& request);

// Whether a task's answers scale with its input, y(c x) = c y(x) for c > 0.
// Every sample of the set is solved again at several powers of two, for
// which both sides are exact. Tokens and pairs stay: samples of a task that has some are drawn
// again from a scaled range. False for tasks of classes.
bool answers_scale(const Task& task, const Dataset& set);

}  // namespace posattn::bounds

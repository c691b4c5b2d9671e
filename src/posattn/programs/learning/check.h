// Whether a model learns as its algorithm says: its answers against the same steps in plain double,
// on random regressions, and its weights against those that compile() writes.
#pragma once

#include <optional>

#include "posattn/programs/learning/learning.h"

namespace posattn {

struct LearningRequest {
  const Model* model = nullptr;
  const LearningProgram* program = nullptr;
  std::vector<double> scales = {1, 10, 1000};  // of y
  int64_t samples = 10000;                     // for each scale
  uint64_t seed = 0;
  int threads = 1;
  // The network in double, with weights that are not rounded to fp32, in place of the model's.
  bool in_double = false;
  bool any_weights = false;  // accepts weights that are not the compiler's
};

struct LearningScale {
  double c = 1;
  int64_t samples = 0, mismatches = 0;
  double largest_error = 0;  // as a part of Learned::size
};

struct WrongAnswer {
  std::vector<float> sample;
  double expected = 0, found = 0, bound = 0;
};

struct LearningVerification {
  double part = 0;  // of its size that an answer may be off (Learned::bound)
  std::vector<LearningScale> scales;
  std::string other_weights;  // how the weights differ from the compiler's, or ""
  bool any_weights = false;
  std::optional<WrongAnswer> wrong;
  bool holds() const { return !wrong && (any_weights || other_weights.empty()); }
};

// Throws Error(data) for a model of another shape than the program's.
LearningVerification verify(const LearningRequest& request);

// A random regression: x ~ N(0, I), y = c (<w, x> + sigma z), w ~ N(0, I / d), sigma from 0 to 1.
void draw_regression(RandomStream& random, int d, double c, std::span<float> sample);

}  // namespace posattn

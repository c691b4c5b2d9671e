// Degrees under scaling as types of a plan's blocks. When the input numbers are multiplied by c >
// 0, what has degree d is multiplied by c^d: values have degree 1; tokens, positions and biases
// degree 0. Every block turns the degree of what it reads into that of what it writes:
//   linear map     keeps it; its bias is an addition of degree 0
//   addition       both sides have one degree
//   ReLU           keeps it; other activations, and sigmoids of gates, keep degree 0 alone
//   normalisation  writes degree 0
//   attention      scores from those of queries and keys by their row (attention/rows.h); weights
//   of
//                  degree 0 keep the degree of what they mix
// A model is homogeneous, f(c x) = c f(x), where its outputs have degree 1 and no rule is broken.
// Two streams are planned so that none is, and biases of degree 1 do not exist there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/model/plan.h"

namespace posattn {

// Of a layer's attention; nothing: no power of c that is known.
struct AttentionDegrees {
  std::optional<int> scores, weights;
  std::string fault;  // the rule that is broken, with the tensor; empty: none
};

struct Degrees {
  std::vector<AttentionDegrees> layers;
  std::string fault;  // the first one outside attention
  int output = 1;
  // Biases, and tables that are added as biases are, of degree 1: the rules hold without them.
  std::vector<TensorId> biases;

  // The fault that decides, an attention's before others.
  std::string broken_by() const;
};

Degrees degrees_of(const Plan& plan);

// Throws Error(configuration) for a plan of two streams that breaks a rule or has such a bias.
void check_degrees(const Plan& plan);

}  // namespace posattn

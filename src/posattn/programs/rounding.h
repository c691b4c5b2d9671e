// How far a network's outputs may lie from the program's exact answer: running error analysis
// (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). Alongside each value the
// run carries a bound of its error: a dot product of k terms adds at most
//   gamma_k sum |w x|,   gamma_k = k u / (1 - k u),   u the unit roundoff,
// to the errors it inherits, sum |w| e; a ReLU adds nothing.
#pragma once

#include <vector>

#include "posattn/programs/network_plan.h"

namespace posattn {

constexpr double float_roundoff = 5.9604644775390625e-08;   // 2^-24
constexpr double double_roundoff = 1.1102230246251565e-16;  // 2^-53

struct BoundedOutputs {
  std::vector<double> values;  // of each processor
  std::vector<double> bounds;  // |computed - exact| is at most this
};

// One input [processors], the network's arithmetic having this unit roundoff. Whatever its order of
// summation, a network with the plan's weights stays within the bounds.
BoundedOutputs bounded_run(const NetworkPlan& plan, const double* input, double roundoff);

}  // namespace posattn

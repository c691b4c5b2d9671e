// How far a network's outputs may lie from the program's exact answer. A round computes f(x) +
// rounding: the rounding of its dot products (k terms add at most gamma_k sum |w x|, gamma_k = k u
// / (1 - k u), u the unit roundoff; Higham, Accuracy and Stability of Numerical Algorithms,
// section 3.1) and the error that x already has, which f passes on: minima, maxima, |x| and relu do
// not enlarge it, sums add it up. So the bound follows the program, not the weights, whose
// cancellations would let a bound grow sevenfold with every comparator. Weights that fp32 does not
// hold exactly are off by what storing them leaves, in any arithmetic. Three things are exact:
// zeros add nothing, sums of whole numbers below 1 / u are not rounded, and a ReLU of what is
// surely negative is zero. So comparisons of whole numbers give exact bits, a selection's shut rail
// is exactly zero, and its open one adds nothing. What it is compared with is rounded too, in
// double: the interpreter rounds its sums and products, the compiler the factors that it adds up.
// Where numbers cancel, that is of the size they had.
#pragma once

#include "posattn/programs/lowering/network_plan.h"

namespace posattn {

constexpr double float_roundoff = 5.9604644775390625e-08;   // 2^-24
constexpr double double_roundoff = 1.1102230246251565e-16;  // 2^-53

struct BoundedOutputs {
  std::vector<double> values;  // of each processor
  std::vector<double> bounds;  // |computed - exact| is at most this
  std::vector<double> slack;   // |computed - interpreted| is at most this more
};

// Bounds the outputs for one input [processors] in arithmetic of this unit roundoff. A network with
// the plan's weights stays within the bounds, whatever its order of summation. `dense`: attention
// is a softmax of scores, not routes.
BoundedOutputs bounded_run(const NetworkPlan& plan, const double* input, double roundoff,
                           bool dense = false);

}  // namespace posattn

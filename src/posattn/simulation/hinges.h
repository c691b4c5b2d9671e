// A piecewise-linear function as an MLP holds it: a constant and hinges, each a ReLU.
#pragma once

#include <algorithm>
#include <vector>

namespace posattn::simulation {

// slope relu(direction (z - knot)), direction 1 or -1
struct Hinge {
  double direction = 1, knot = 0, slope = 0;
};

struct HingeSum {
  double constant = 0;
  std::vector<Hinge> hinges;

  double operator()(double z) const {
    double sum = constant;
    for (const Hinge& hinge : hinges) {
      sum += hinge.slope * std::max(0.0, hinge.direction * (z - hinge.knot));
    }
    return sum;
  }
};

}  // namespace posattn::simulation

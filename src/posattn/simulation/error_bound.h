// How far a copy's outputs can be from the original's, for every input at once.
//
// It holds, in exact arithmetic, for all inputs on which the copy's arguments stay inside their
// tables, and what was left out stays below 1.5 times what it was in calibration. Errors go through
// a layer as follows; e is what is known of the words u, entry by entry.
//
//   scores   each product a b: |a| db + |b| da + da db + (E_sum + E_difference) / 4, where a and b
//            are half a sum and half a difference, which the tables bound; and |linear| e. All
//            together are at most s
//   weights  scores that are s off move at most tanh(s / 2) of the weight, so that a mean of values
//            moves by that times their range
//   sums     log(e^L + e^s) moves no more than L or s does, so each softplus adds its table's
//   error:
//            h in all, which makes a factor of e^h
//   MLP      |W| e, since a ReLU enlarges nothing
#pragma once

#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

inline constexpr double bound_margin = 1.5;

double error_bound(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                   const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                   const Calibration& calibration);

}  // namespace posattn::simulation

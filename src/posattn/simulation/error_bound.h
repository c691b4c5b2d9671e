// How far a copy's outputs can be from the original's, for all inputs of a set at once.
//
// A layer takes errors e of the words u, node by node and word by word, to errors E(u; e), which
// holds in exact arithmetic for the words u of any input:
//
//   scores   s = |a K + linear| e_j + |b Q + own| e_i + |Q| e_i |K| e_j + the tables' errors, where
//   a
//            = Q u_i and b = K u_j are the original's
//   weights  p_j (e^s_j - 1) / sum_j p_j e^-s_j at most is moved, each, and tanh(s / 2) of them
//   all;
//            a mean of values moves by their distances from it
//   sums     a softplus adds its table's error where its argument may be, and what was wrong before
//            counts by its share: h in all, a factor of e^h
//   MLP      |W| e, and nothing where a hidden unit is off in both
//
// The bound takes e after a layer as `margin` times the largest E(u; e) on some inputs. So it holds
// for every input on which the copy's arguments stay inside their tables, what was left out stays
// below 1.5 times what it was in calibration, and E below `margin` times what it was on these.
#pragma once

#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

double error_bound(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                   const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                   const Calibration& inputs, int threads = 1, double margin = 1.5);

}  // namespace posattn::simulation

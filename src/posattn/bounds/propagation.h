// How far states reach and how errors travel (lemma 7 of docs/bounds.md), over samples and nodes at
// once; all as natural logarithms.
//
//   B_0 = R (standard: sqrt(R^2 + 1)),  B_l = (sum_h ||T_h||) B_{l-1} + ||t||
//   Lambda_l = sum_h ||T_h||                                              positional
//            = ||T_0|| + sum_h ||T_h|| (1 + 2 ||M_h|| B^2 + ||mu_h|| B)   standard, B = B_{l-1}
//   P_L = ||w||,  P_l = P_{l+1} Lambda_{l+1}
#pragma once

#include <vector>

#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

struct Propagation {
  std::vector<double> state;          // ln B_0 .. ln B_L: lengths of states
  std::vector<double> amplification;  // ln Lambda_1 .. ln Lambda_L: of an error by a layer
  std::vector<double> sensitivity;    // ln P_1 .. ln P_L: of the output to an error after layer l

  // ln sqrt((H+1) B_l^2 + 1): the length of what the maps of layer l (from 0) are applied to.
  double joined_state(int layer, int heads) const;
  // ln B_l sqrt(B_l^2 + 1): of what the score matrices of layer l are applied to.
  double score_state(int layer) const;
};

Propagation propagate(const NetworkNorms& norms, double range);

}  // namespace posattn::bounds

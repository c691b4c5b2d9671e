// The bounds by norms: (a) for positional networks, whose attention is covered as any matrix with
// rows that sum to one, so that no norm of queries and keys appears, and (b) for standard ones,
// with a query-key factor in every layer (lemmas 8 and 9 of docs/bounds.md).
//
//   gap <= 2 Rademacher average + b^2 sqrt((ln(2/delta) + g) / (2m))
#pragma once

#include <string>

#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

// A covered matrix: an error eps of it becomes P eps at the output and costs (C / eps)^2 nats.
struct CoveredMatrix {
  std::string name;            // "T", "M.0" (of head 0), "out"
  int layer = 0;               // from 0; the depth: of the output
  double log_sensitivity = 0;  // ln P
  double log_size = 0;         // ln C
};

struct NormBound {
  double log_gap = 0;         // ln of the bound on |risk - training loss|
  double log_average = 0;     // ln of the Rademacher average's bound
  double log_confidence = 0;  // ln of the second term
  double grid_cost = 0;       // g, nats
  int links = 0;              // of the chain
  // At the chain's last radius, ln of each part of the entropy.
  double log_matrices = 0;   // S^3 / E^2
  double log_profiles = 0;   // of rows
  double log_attention = 0;  // of free attention, positional only
  Propagation propagation;
  std::vector<CoveredMatrix> matrices;
};

NormBound norm_bound(const NetworkNorms& norms, const BoundSetting& setting);

// How many training samples a bound needs to promise a gap: the inverse of norm_bound and
// count_bound in m.
struct SamplesNeeded {
  double gap = 0;  // eps: what is to be promised, of |risk - training loss|
  // ln of the smallest m with a bound of at most eps, found to a thousandth of m.
  double log_by_norms = 0, log_by_count = 0;
};

// The setting's own m does not matter. Throws Error(usage) for a gap that is no number above 0.
SamplesNeeded samples_needed(const NetworkNorms& norms, const BoundSetting& setting, double gap);

}  // namespace posattn::bounds

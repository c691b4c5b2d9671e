// The bound by the number of parameters (c), and its small-loss form (lemma 10 of docs/bounds.md):
// covers of balls that do not depend on the data, one union over them, no chaining.
//
//   gap  <= 2 eps + b^2 sqrt((ln N(eps) + g + ln(2/delta)) / (2m))
//   risk <= b^2 kl_inverse((loss + eps) / b^2, (ln N(eps) + g + ln(59/delta)) / m) + eps
#pragma once

#include <cstdint>

#include "posattn/bounds/bound_setting.h"
#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

struct CountBound {
  double gap = 0;          // on |risk - training loss|
  double radius = 0;       // eps, the best of b^2 e^(-j/2), j = 1..59
  int64_t parameters = 0;  // of the collapsed network, rows of attention as free ones
  double entropy = 0;      // ln N(eps), nats
  double grid_cost = 0;    // g, nats
};

CountBound count_bound(const NetworkNorms& norms, const BoundSetting& setting);

// A bound on the risk of a network with this clipped training loss, b^2 at most.
double small_loss_bound(const NetworkNorms& norms, const BoundSetting& setting,
                        double training_loss);

// Bernoulli relative entropy and its inverse: what turns a statement on kl(training loss || risk)
// into a bound on the risk (Langford and Seeger 2001).

// q ln(q/p) + (1-q) ln((1-q)/(1-p)) for q, p in [0, 1], with 0 ln 0 = 0; infinite where p excludes
// what q allows.
double binary_kl(double q, double p);

// The largest p with kl(q || p) <= bound, rounded up: q <= p <= 1. q in [0, 1], bound >= 0
// (infinite is allowed and gives 1).
double kl_inverse(double q, double bound);

}  // namespace posattn::bounds

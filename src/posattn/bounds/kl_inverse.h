// Bernoulli relative entropy and its inverse: what turns a statement on kl(training loss || risk)
// into a bound on the risk (Langford and Seeger 2001).
#pragma once

namespace posattn::bounds {

// q ln(q/p) + (1-q) ln((1-q)/(1-p)) for q, p in [0, 1], with 0 ln 0 = 0; infinite where p excludes
// what q allows.
double binary_kl(double q, double p);

// The largest p with kl(q || p) <= bound, rounded up: q <= p <= 1. q in [0, 1], bound >= 0
// (infinite is allowed and gives 1).
double kl_inverse(double q, double bound);

}  // namespace posattn::bounds

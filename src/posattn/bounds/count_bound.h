// The bound by the number of parameters (c), and its small-loss form (lemma 10 of docs/bounds.md):
// covers of balls that do not depend on the data, one union over them, no chaining.
//
//   gap  <= 2 eps + b^2 sqrt((ln N(eps) + g + ln(2/delta)) / (2m))
//   risk <= b^2 kl_inverse((loss + eps) / b^2, (ln N(eps) + g + ln(59/delta)) / m) + eps
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

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

// How many networks are enough to stand for all (lemmas 3 to 5 of docs/bounds.md): logarithms of
// covering numbers, in nats.

// Lemma 4. Matrices cost the same with ||W||_{2,1} in the place of ||w||, times this factor
// squared, and the number of ways to share that norm among the rows.
inline constexpr double row_factor = 1.1;  // 1 + 1/q with q = 10
double row_profiles(int rows);             // ln C((q + 2) rows, rows)

// Lemma 5. One row of attention, a distribution over `nodes`, to e^log_radius in l1. With `samples`
// to that radius in its effect on so many samples, which many nodes need fewer distributions for.
double attention_row_entropy(double log_radius, int nodes, std::optional<double> samples = {});

// k of lemma 5: entries are multiples of 1/k. As its logarithm, and 0 for a radius of 2 and above,
// where one distribution is enough.
std::optional<double> log_attention_steps(double log_radius, int nodes,
                                          std::optional<double> samples);

// From covering numbers to the gap (lemma 2 of docs/bounds.md): the Rademacher average of the
// clipped losses is at most, for every K >= 1,
//   eps_K + sum over k = 1..K of (eps_k + eps_{k-1}) sqrt(2 (H_k + H_{k-1}) / m)
// with eps_k = (b^2/2) 2^-k, H_k the entropy at eps_k and H_0 = 0.
struct Chain {
  double log_average = 0;  // ln of the bound on the Rademacher average, the least over K
  int links = 0;           // that K
};

// `log_entropy`: ln H(eps) for ln eps, of the losses.
Chain chain(const std::function<double(double)>& log_entropy, double samples, double clip);

}  // namespace posattn::bounds

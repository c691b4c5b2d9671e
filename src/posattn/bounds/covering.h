// How many networks are enough to stand for all (lemmas 3 to 5 of docs/bounds.md): logarithms of
// covering numbers, in nats.
#pragma once

#include <functional>
#include <optional>

namespace posattn::bounds {

// Lemma 3. Linear functions with ||w|| <= size on `points` points with ||x|| <= length, to `radius`
// at each of them: (size length / radius)^2 ln(2 points + 1).
double linear_entropy(double size, double length, double radius, double points);

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

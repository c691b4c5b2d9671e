// How many networks are enough to stand for all (lemmas 3 to 5 of docs/bounds.md): logarithms of
// covering numbers, in nats.
#pragma once

#include <cstdint>
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

}  // namespace posattn::bounds

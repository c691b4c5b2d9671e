// The statements of a certificate, with probability 1 - delta over the training set (and the
// draws). All losses are in units of b^2, so between 0 and 1.
//
// The randomised network, which draws its weights anew for each answer:
//   kl(loss || risk) <= (KL + cost + ln(4 sqrt(m) / delta)) / m            [delta / 2]
//   kl(Monte-Carlo mean || loss) <= ln(2 / delta) / draws                  [delta / 2]
// with `loss` that on the training set (Langford and Seeger 2001; Maurer, arXiv cs/0411099, for the
// constant 2 sqrt(m) from m = 8 on; Chernoff for the draws).
//
// One network drawn once from the posterior Q (Rivasplata et al., arXiv 2006.13057):
//   kl(its training loss || its risk) <= (ln dQ/dP + cost + ln(2 sqrt(m) / delta)) / m.
#pragma once

#include <cstdint>

namespace posattn::bounds {

constexpr int64_t fewest_certified_samples = 8;

// An upper bound on the expectation of independent numbers in [0, 1] with this mean, but for a
// chance of `delta`.
double expectation_bound(double mean, int64_t count, double delta);

// `divergence`: with the cost of the scales.
double randomised_bound(double loss_bound, double divergence, int64_t samples, double delta);
double drawn_bound(double training_loss, double log_ratio, int64_t samples, double delta);

}  // namespace posattn::bounds

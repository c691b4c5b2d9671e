// Prior and posterior of a certificate: Gaussians over the coordinates of a collapsed network.
//
//   prior      N(w_0, lambda_g^2), w_0 the initial coordinates, one lambda for each group g
//   posterior  N(mu, diag sigma^2)
//
// The scales lambda may depend on the data because they come from a grid that is fixed before,
// lambda = 0.3 e^(2 j / sqrt(n)) for a group of n numbers, with prior weight
// (2/3) / ((|j|+1) (|j|+2)), which sums to 1 over all j: minus its logarithm is the cost of the
// choice. With this step rounding to the grid adds at most 1 nat.
#pragma once

#include <span>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/coordinates.h"

namespace posattn::bounds {

struct Posterior {
  std::vector<float> mean, log_deviation;
};

struct PricedVariances {
  std::vector<double> variances;
  double cost = 0;  // nats
};

class GaussianPrior {
 public:
  GaussianPrior(std::vector<CoordinateGroup> groups, std::vector<float> centre);

  const std::vector<float>& centre() const { return centre_; }
  const std::vector<CoordinateGroup>& groups() const { return groups_; }

  // lambda_g^2 that makes the divergence least: the mean of sigma^2 + (mu - w_0)^2.
  std::vector<double> best_variances(const Posterior& posterior) const;

  // The nearest on the grid.
  PricedVariances on_grid(std::span<const double> variances) const;

  // KL(posterior || prior) in nats.
  double divergence(const Posterior& posterior, std::span<const double> variances) const;

  // ln dQ/dP at a network drawn from the posterior, w = mu + sigma noise.
  double log_ratio(const Posterior& posterior, std::span<const double> variances,
                   std::span<const float> noise) const;

 private:
  std::vector<CoordinateGroup> groups_;
  std::vector<float> centre_;
};

// Standard normal numbers by Box-Muller as in RandomStream::normal, but both of a pair and in
// float.
void fill_normal(RandomStream& random, std::span<float> numbers);

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

constexpr int64_t fewest_certified_samples = 8;

// An upper bound on the expectation of independent numbers in [0, 1] with this mean, but for a
// chance of `delta`.
double expectation_bound(double mean, int64_t count, double delta);

// `divergence`: with the cost of the scales.
double randomised_bound(double loss_bound, double divergence, int64_t samples, double delta);
double drawn_bound(double training_loss, double log_ratio, int64_t samples, double delta);

}  // namespace posattn::bounds

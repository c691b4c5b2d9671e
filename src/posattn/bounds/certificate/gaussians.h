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
#include <vector>

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

}  // namespace posattn::bounds

#include "posattn/bounds/certificate/gaussians.h"

#include <gtest/gtest.h>

#include <cmath>

namespace posattn::bounds {
namespace {

const std::vector<CoordinateGroup> two_groups = {{"a", 0, 2}, {"b", 2, 3}};

GaussianPrior some_prior() { return {two_groups, {0.5F, -1, 0, 2, 0.1F}}; }
Posterior some_posterior() { return {{0.7F, -1.5F, 0.3F, 2, 0}, {-1, -2, -0.5F, -3, -1.5F}}; }

double log_density(double x, double mean, double deviation) {
  return -0.5 * std::pow((x - mean) / deviation, 2) - std::log(deviation);
}

TEST(Gaussians, RatioIsThatOfTheDensities) {
  const GaussianPrior prior = some_prior();
  const Posterior posterior = some_posterior();
  const std::vector<double> variances = {0.04, 0.25};
  const std::vector<float> noise = {0.3F, -1.2F, 2, 0, -0.4F};
  double expected = 0;
  for (int k = 0; k < 5; ++k) {
    const double deviation = std::exp(posterior.log_deviation[k]);
    const double w = posterior.mean[k] + deviation * noise[k];
    expected += log_density(w, posterior.mean[k], deviation) -
                log_density(w, prior.centre()[k], k < 2 ? 0.2 : 0.5);
  }
  EXPECT_NEAR(prior.log_ratio(posterior, variances, noise), expected, 1e-6);
}

TEST(Gaussians, DivergenceIsTheMeanRatio) {
  const GaussianPrior prior = some_prior();
  const Posterior posterior = some_posterior();
  const std::vector<double> variances = prior.best_variances(posterior);
  RandomStream random(1, Purpose::test_data, 0, 0);
  std::vector<float> noise(5);
  double sum = 0, squares = 0;
  constexpr int draws = 20'000;
  for (int d = 0; d < draws; ++d) {
    fill_normal(random, noise);
    const double ratio = prior.log_ratio(posterior, variances, noise);
    sum += ratio / draws;
    squares += ratio * ratio / draws;
  }
  const double error = std::sqrt((squares - sum * sum) / draws);
  EXPECT_NEAR(sum, prior.divergence(posterior, variances), 4 * error);
  EXPECT_LT(error, 0.05);
}

TEST(Gaussians, BestVariancesAreBestAndPosteriorAtThePriorIsFree) {
  const GaussianPrior prior = some_prior();
  const Posterior posterior = some_posterior();
  const std::vector<double> best = prior.best_variances(posterior);
  const double least = prior.divergence(posterior, best);
  for (const double factor : {0.9, 1.1}) {
    EXPECT_GT(prior.divergence(posterior, std::vector<double>{best[0] * factor, best[1]}), least);
    EXPECT_GT(prior.divergence(posterior, std::vector<double>{best[0], best[1] * factor}), least);
  }
  const Posterior same{prior.centre(), std::vector<float>(5, std::log(0.5F))};
  EXPECT_NEAR(prior.divergence(same, std::vector<double>{0.25, 0.25}), 0, 1e-6);
}

TEST(Gaussians, GridIsNearAndItsWeightsAreAtMostOne) {
  const GaussianPrior prior = some_prior();
  const Posterior posterior = some_posterior();
  for (const double factor : {1e-6, 0.1, 1.0, 1.3, 50.0}) {
    std::vector<double> variances = prior.best_variances(posterior);
    for (double& variance : variances) variance *= factor;
    const PricedVariances priced = prior.on_grid(variances);
    for (size_t g = 0; g < variances.size(); ++g) {
      const double size = static_cast<double>(two_groups[g].size);
      EXPECT_LE(std::abs(std::log(priced.variances[g] / variances[g])) / 2,
                1 / std::sqrt(size) + 1e-12);
    }
    // On the grid itself nothing moves.
    EXPECT_NEAR(prior.on_grid(priced.variances).variances[0], priced.variances[0],
                1e-12 * priced.variances[0]);
    EXPECT_EQ(prior.on_grid(priced.variances).cost, priced.cost);
  }
  // e^-cost over all places of one group.
  const GaussianPrior one({{"a", 0, 4}}, {0, 0, 0, 0});
  double weights = 0;
  for (int j = -300; j <= 300; ++j) {
    const double scale = 0.3 * std::exp(static_cast<double>(j));
    weights += std::exp(-one.on_grid(std::vector<double>{scale * scale}).cost);
  }
  EXPECT_LE(weights, 1);
  EXPECT_GT(weights, 0.99);
}

}  // namespace
}  // namespace posattn::bounds

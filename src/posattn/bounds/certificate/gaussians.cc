#include "posattn/bounds/certificate/gaussians.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {

GaussianPrior::GaussianPrior(std::vector<CoordinateGroup> groups, std::vector<float> centre)
    : groups_(std::move(groups)), centre_(std::move(centre)) {}

std::vector<double> GaussianPrior::best_variances(const Posterior& posterior) const {
  std::vector<double> variances;
  for (const CoordinateGroup& group : groups_) {
    double sum = 0;
    for (int64_t k = group.first; k < group.first + group.size; ++k) {
      const double moved = double{posterior.mean[k]} - double{centre_[k]};
      sum += std::exp(2 * double{posterior.log_deviation[k]}) + moved * moved;
    }
    variances.push_back(sum / static_cast<double>(group.size));
  }
  return variances;
}

double GaussianPrior::divergence(const Posterior& posterior,
                                 std::span<const double> variances) const {
  double sum = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const double logarithm = std::log(variances[g]);
    for (int64_t k = groups_[g].first; k < groups_[g].first + groups_[g].size; ++k) {
      const double moved = double{posterior.mean[k]} - double{centre_[k]};
      const double log_variance = 2 * double{posterior.log_deviation[k]};
      sum += (std::exp(log_variance) + moved * moved) / variances[g] - 1 + logarithm - log_variance;
    }
  }
  return sum / 2;
}

double GaussianPrior::log_ratio(const Posterior& posterior, std::span<const double> variances,
                                std::span<const float> noise) const {
  double sum = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const double logarithm = std::log(variances[g]);
    for (int64_t k = groups_[g].first; k < groups_[g].first + groups_[g].size; ++k) {
      const double log_deviation = posterior.log_deviation[k], e = noise[k];
      const double moved =
          double{posterior.mean[k]} + std::exp(log_deviation) * e - double{centre_[k]};
      sum += moved * moved / variances[g] + logarithm - e * e - 2 * log_deviation;
    }
  }
  return sum / 2;
}

PricedVariances GaussianPrior::on_grid(std::span<const double> variances) const {
  constexpr double middle = 0.3;
  PricedVariances priced;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const double step = 2 / std::sqrt(static_cast<double>(groups_[g].size));
    const double j = std::round((std::log(variances[g]) / 2 - std::log(middle)) / step);
    const double scale = middle * std::exp(j * step);
    priced.variances.push_back(scale * scale);
    priced.cost += std::log(1.5 * (std::abs(j) + 1) * (std::abs(j) + 2));
  }
  return priced;
}

void fill_normal(RandomStream& random, std::span<float> numbers) {
  constexpr float turn = 2 * std::numbers::pi_v<float>;
  for (size_t k = 0; k < numbers.size(); k += 2) {
    // 32 bits in (0, 1]: tails up to 6.6 deviations.
    const float u = (static_cast<float>(random.next()) + 1.0F) * 0x1p-32F;
    const float angle = turn * random.uniform();
    const float radius = std::sqrt(-2 * std::log(u));
    numbers[k] = radius * std::cos(angle);
    if (k + 1 < numbers.size()) numbers[k + 1] = radius * std::sin(angle);
  }
}

double expectation_bound(double mean, int64_t count, double delta) {
  return kl_inverse(mean, std::log(1 / delta) / static_cast<double>(count));
}

double drawn_bound(double training_loss, double log_ratio, int64_t samples, double delta) {
  const auto m = static_cast<double>(samples);
  // A single draw may have a ratio below 1; the right side never has.
  const double right = std::max(0.0, log_ratio + std::log(2 * std::sqrt(m) / delta));
  return kl_inverse(training_loss, right / m);
}

double randomised_bound(double loss_bound, double divergence, int64_t samples, double delta) {
  return drawn_bound(loss_bound, divergence, samples, delta / 2);
}

}  // namespace posattn::bounds

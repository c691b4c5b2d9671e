#include "posattn/bounds/certificate/posterior_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "posattn/base/parallel.h"
#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {
namespace {

// One network drawn in a step, and what it says.
struct NoisyNetwork {
  NoisyNetwork(const Coordinates& coordinates, int samples)
      : engine(coordinates, samples),
        signs(coordinates.size()),
        weights(coordinates.size()),
        gradient(coordinates.size()),
        inputs(static_cast<size_t>(samples) * coordinates.real_nodes()),
        targets(inputs.size()) {}

  CollapsedEngine engine;
  std::vector<float> signs, weights, gradient, inputs, targets;
  double loss = 0;
};

float random_sign(RandomStream& random) { return (random.next() >> 31) != 0 ? 1.0F : -1.0F; }

// Adam's running means, and the step that they say in units of the rate.
class AdamMeans {
 public:
  explicit AdamMeans(int64_t size) : first_(size), second_(size) {}

  void begin_step() {
    power1_ *= beta1;
    power2_ *= beta2;
    first_factor_ = static_cast<float>(1 / (1 - power1_));
    second_factor_ = static_cast<float>(1 / (1 - power2_));
  }
  float step(int64_t k, float gradient) {
    first_[k] = beta1 * first_[k] + (1 - beta1) * gradient;
    second_[k] = beta2 * second_[k] + (1 - beta2) * gradient * gradient;
    return first_[k] * first_factor_ / (std::sqrt(second_[k] * second_factor_) + 1e-12F);
  }

 private:
  static constexpr float beta1 = 0.9F, beta2 = 0.99F;
  double power1_ = 1, power2_ = 1;
  float first_factor_ = 1, second_factor_ = 1;
  std::vector<float> first_, second_;
};

class Trainer {
 public:
  Trainer(const Coordinates& coordinates, const GaussianPrior& prior, Posterior start,
          const LabelledSamples& data, const PosteriorTraining& options)
      : coordinates_(coordinates),
        prior_(prior),
        data_(data),
        options_(options),
        posterior_(std::move(start)),
        noise_(coordinates.size()),
        deviation_(coordinates.size()),
        by_mean_(coordinates.size()),
        by_noise_(coordinates.size()),
        mean_steps_(coordinates.size()),
        deviation_steps_(coordinates.size()) {
    for (int d = 0; d < options.draws; ++d) networks_.emplace_back(coordinates, options.samples);
  }

  const Posterior& posterior() const { return posterior_; }

  PosteriorProgress step(int64_t index) {
    const auto variant = static_cast<uint32_t>(index);
    RandomStream random(options_.seed, Purpose::posterior_training, variant, 0);
    fill_normal(random, noise_);
    for (int64_t k = 0; k < coordinates_.size(); ++k) {
      deviation_[k] = std::exp(posterior_.log_deviation[k]);
    }
    parallel_for(options_.draws, options_.threads,
                 [&](int64_t d) { run_network(static_cast<int>(d), variant); });
    sum_gradients();

    const double m = static_cast<double>(data_.samples);
    const std::vector<double> variances = prior_.best_variances(posterior_);
    PosteriorProgress progress{index + 1, 0, prior_.divergence(posterior_, variances), 1};
    for (const NoisyNetwork& network : networks_) progress.loss += network.loss / options_.draws;
    loss_ = index == 0 ? progress.loss : 0.99 * loss_ + 0.01 * progress.loss;
    progress.loss = loss_;
    const double right = progress.divergence + std::log(4 * std::sqrt(m) / options_.delta);
    progress.bound = kl_inverse(std::clamp(loss_, 0.0, 1.0), right / m);
    // The weight of the divergence. At a bound near 1 its gradient nearly vanishes, and the bound
    // would stay there.
    const double q = std::clamp(loss_, 1e-6, 0.4), p = std::clamp(progress.bound, 1.01 * q, 0.5);
    const double weight = 1 / (m * std::log(p * (1 - q) / (q * (1 - p))));
    if (index == 0) keep_or_return(variant);
    move(variances, static_cast<float>(weight), caution_ * rate_factor(index));
    if ((index + 1) % check_every == 0 || index + 1 == options_.steps) keep_or_return(variant + 1);
    return progress;
  }

 private:
  static constexpr int64_t check_every = 500;  // steps

  // Large steps are fast, but may move from a good posterior to one whose networks are all noise.
  // Then training returns to the best posterior so far and continues with half the rates. The
  // running loss lags behind such a fall, so the posterior is measured as it is.
  void keep_or_return(uint32_t variant) {
    const MonteCarlo check{.draws = 300,
                           .clip = options_.clip,
                           .seed = options_.seed,
                           .purpose = Purpose::posterior_training,
                           .variant = ~variant,  // differs from those of the steps
                           .threads = options_.threads};
    double loss = 0;
    for (const double one : noisy_losses(coordinates_, posterior_, data_, check)) {
      loss += one / static_cast<double>(check.draws);
    }
    const double bound =
        randomised_bound(loss, prior_.divergence(posterior_, prior_.best_variances(posterior_)),
                         data_.samples, options_.delta);
    if (bound <= best_bound_) {
      best_bound_ = bound;
      best_loss_ = loss;
      best_ = posterior_;
    } else if (bound > std::min(1.5 * best_bound_, (1 + best_bound_) / 2)) {
      posterior_ = best_;
      loss_ = best_loss_;
      mean_steps_ = deviation_steps_ = AdamMeans(coordinates_.size());
      caution_ /= 2;
    }
  }

  // Rises over the first steps, falls to nothing as a cosine.
  double rate_factor(int64_t index) const {
    constexpr double rise = 100;
    const double done = static_cast<double>(index) / static_cast<double>(options_.steps);
    return std::min(1.0, static_cast<double>(index + 1) / rise) *
           (1 + std::cos(std::numbers::pi * done)) / 2;
  }

  void run_network(int index, uint32_t variant) {
    NoisyNetwork& network = networks_[index];
    choose_signs(network, index, variant);
#pragma omp simd
    for (int64_t k = 0; k < coordinates_.size(); ++k) {
      network.weights[k] = posterior_.mean[k] + deviation_[k] * noise_[k] * network.signs[k];
    }
    // Behind the streams of signs.
    RandomStream chosen(options_.seed, Purpose::posterior_training, variant,
                        static_cast<uint32_t>(1 + options_.draws + index));
    const int nodes = coordinates_.real_nodes();
    for (int b = 0; b < options_.samples; ++b) {
      const int64_t from = int64_t{chosen.below(static_cast<uint32_t>(data_.samples))} * nodes;
      std::copy_n(data_.inputs.data() + from, nodes, network.inputs.data() + b * nodes);
      std::copy_n(data_.targets.data() + from, nodes, network.targets.data() + b * nodes);
    }
    std::ranges::fill(network.gradient, 0.0F);
    network.loss = network.engine.add_gradient(
        network.weights.data(), {network.inputs.data(), network.targets.data(), options_.samples},
        {options_.clip, true}, network.gradient.data());
  }

  // A draw's noise is the step's with signs, those of a row times those of a column: each draw is
  // Gaussian and no two are correlated, at the price of one. Every second is minus the one before.
  void choose_signs(NoisyNetwork& network, int index, uint32_t variant) {
    RandomStream random(options_.seed, Purpose::posterior_training, variant,
                        1 + static_cast<uint32_t>(index / 2));
    std::vector<float> columns;
    for (const CoordinateTensor& tensor : coordinates_.tensors()) {
      columns.resize(tensor.columns);
      for (float& sign : columns) sign = random_sign(random);
      for (int r = 0; r < tensor.rows; ++r) {
        const float row = random_sign(random) * (index % 2 == 0 ? 1.0F : -1.0F);
        float* signs = network.signs.data() + tensor.first + int64_t{r} * tensor.columns;
        for (int c = 0; c < tensor.columns; ++c) signs[c] = row * columns[c];
      }
    }
  }

  // Means over the draws of the gradient by w and by w times the noise, in order.
  void sum_gradients() {
    std::ranges::fill(by_mean_, 0.0F);
    std::ranges::fill(by_noise_, 0.0F);
    const float share = 1.0F / static_cast<float>(options_.draws);
    for (const NoisyNetwork& network : networks_) {
#pragma omp simd
      for (int64_t k = 0; k < coordinates_.size(); ++k) {
        const float part = share * network.gradient[k];
        by_mean_[k] += part;
        by_noise_[k] += part * network.signs[k] * noise_[k];
      }
    }
  }

  // Steps of the mean are in units of the prior's scale.
  void move(const std::vector<double>& variances, float weight, double factor) {
    mean_steps_.begin_step();
    deviation_steps_.begin_step();
    const auto deviation_rate = static_cast<float>(factor * options_.deviation_rate);
    for (size_t g = 0; g < variances.size(); ++g) {
      const CoordinateGroup& group = prior_.groups()[g];
      const auto mean_rate = static_cast<float>(factor * options_.rate * std::sqrt(variances[g]));
      const float precision = static_cast<float>(1 / variances[g]);
#pragma omp simd
      for (int64_t k = group.first; k < group.first + group.size; ++k) {
        const float moved = posterior_.mean[k] - prior_.centre()[k];
        const float by_mean = by_mean_[k] + weight * precision * moved;
        const float by_deviation =
            by_noise_[k] * deviation_[k] + weight * (precision * deviation_[k] * deviation_[k] - 1);
        posterior_.mean[k] -= mean_rate * mean_steps_.step(k, by_mean);
        posterior_.log_deviation[k] -= deviation_rate * deviation_steps_.step(k, by_deviation);
      }
    }
  }

  const Coordinates& coordinates_;
  const GaussianPrior& prior_;
  const LabelledSamples& data_;
  const PosteriorTraining& options_;
  Posterior posterior_;
  std::vector<float> noise_, deviation_, by_mean_, by_noise_;
  AdamMeans mean_steps_, deviation_steps_;
  std::vector<NoisyNetwork> networks_;
  double loss_ = 0;  // running
  Posterior best_;
  double best_loss_ = 1, best_bound_ = std::numeric_limits<double>::infinity();
  double caution_ = 1;
};

}  // namespace

Posterior train_posterior(const Coordinates& coordinates, const GaussianPrior& prior,
                          const std::vector<float>& trained, const LabelledSamples& data,
                          const PosteriorTraining& options) {
  Posterior start{trained, std::vector<float>(trained.size(), std::log(options.start_deviation))};
  Trainer trainer(coordinates, prior, std::move(start), data, options);
  for (int64_t index = 0; index < options.steps; ++index) {
    if (options.stop != nullptr && *options.stop) break;
    const PosteriorProgress progress = trainer.step(index);
    if (options.progress) options.progress(progress);
  }
  return trainer.posterior();
}

double loss_on(const Coordinates& coordinates, const std::vector<float>& weights,
               const LabelledSamples& data, double clip, int threads) {
  constexpr int64_t chunk = 100;
  constexpr int64_t per_part = 10 * chunk;
  const int64_t parts = (data.samples + per_part - 1) / per_part;
  std::vector<double> sums(parts);
  parallel_for(parts, threads, [&](int64_t part) {
    CollapsedEngine engine(coordinates, chunk);
    const int64_t end = std::min(data.samples, (part + 1) * per_part);
    for (int64_t first = part * per_part; first < end; first += chunk) {
      const auto samples = static_cast<int>(std::min(chunk, end - first));
      const int64_t offset = first * coordinates.real_nodes();
      sums[part] +=
          samples *
          engine.loss(weights.data(),
                      {data.inputs.data() + offset, data.targets.data() + offset, samples}, {clip});
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum / static_cast<double>(data.samples);
}

std::vector<double> noisy_losses(const Coordinates& coordinates, const Posterior& posterior,
                                 const LabelledSamples& data, const MonteCarlo& options) {
  std::vector<double> losses(options.draws);
  const std::vector<float> deviations = deviations_of(posterior);
  constexpr int64_t per_part = 100;
  const int nodes = coordinates.real_nodes();
  parallel_for((options.draws + per_part - 1) / per_part, options.threads, [&](int64_t part) {
    if (options.stop != nullptr && *options.stop) return;
    CollapsedEngine engine(coordinates, options.samples);
    std::vector<float> noise(coordinates.size()), weights(coordinates.size());
    std::vector<float> inputs(static_cast<size_t>(options.samples) * nodes), targets(inputs.size());
    const int64_t end = std::min(options.draws, (part + 1) * per_part);
    for (int64_t d = part * per_part; d < end; ++d) {
      RandomStream random(options.seed, options.purpose, options.variant, static_cast<uint32_t>(d));
      fill_normal(random, noise);
      add_noise(posterior.mean, deviations, noise, weights);
      for (int b = 0; b < options.samples; ++b) {
        const int64_t from = int64_t{random.below(static_cast<uint32_t>(data.samples))} * nodes;
        std::copy_n(data.inputs.data() + from, nodes, inputs.data() + int64_t{b} * nodes);
        std::copy_n(data.targets.data() + from, nodes, targets.data() + int64_t{b} * nodes);
      }
      losses[d] = engine.loss(weights.data(), {inputs.data(), targets.data(), options.samples},
                              {options.clip});
    }
    if (options.drawn) options.drawn(end - part * per_part);
  });
  return losses;
}

std::vector<float> deviations_of(const Posterior& posterior) {
  std::vector<float> deviations(posterior.log_deviation.size());
  std::ranges::transform(posterior.log_deviation, deviations.begin(),
                         [](float logarithm) { return std::exp(logarithm); });
  return deviations;
}

void add_noise(const std::vector<float>& mean, const std::vector<float>& deviations,
               const std::vector<float>& noise, std::vector<float>& weights) {
#pragma omp simd
  for (size_t k = 0; k < noise.size(); ++k) weights[k] = mean[k] + deviations[k] * noise[k];
}

}  // namespace posattn::bounds

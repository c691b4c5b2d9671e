// Finds a posterior with a small bound: mean and deviations by Adam on
//   loss + KL / (m ln(p (1-q) / (q (1-p)))),   p = klinv(q, (KL + ln(4 sqrt(m) / delta)) / m),
// whose gradient is that of the bound p itself up to a factor: dp/dc and dp/dq of the inverse kl
// have this ratio. q is a running mean of the noisy networks' clipped loss. The certificate holds
// for any posterior, so nothing here needs to be trusted.
#pragma once

#include <atomic>
#include <functional>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/collapsed_engine.h"
#include "posattn/bounds/certificate/coordinates.h"
#include "posattn/bounds/certificate/gaussians.h"

namespace posattn::bounds {

// The loss of networks drawn from a posterior.

// The mean clipped loss over all samples of a network with these weights, in [0, 1].
double loss_on(const Coordinates& coordinates, const std::vector<float>& weights,
               const LabelledSamples& data, double clip, int threads);

struct MonteCarlo {
  int64_t draws = 20'000;
  int samples = 10;  // of each network
  double clip = 1;
  uint64_t seed = 0;
  Purpose purpose = Purpose::posterior_draws;
  uint32_t variant = 0;  // other draws of the same seed
  int threads = 1;
  std::function<void(int64_t)> drawn = {};  // so many networks more; called from all threads
  const std::atomic<bool>* stop = nullptr;  // set: the losses that are left stay 0
};

// One number in [0, 1] for each of `draws`: a network of its own on samples of its own, drawn with
// replacement. They are independent, and their expectation is the posterior's loss on `data`.
std::vector<double> noisy_losses(const Coordinates& coordinates, const Posterior& posterior,
                                 const LabelledSamples& data, const MonteCarlo& options);

// sigma
std::vector<float> deviations_of(const Posterior& posterior);
// mu + sigma noise
void add_noise(const std::vector<float>& mean, const std::vector<float>& deviations,
               const std::vector<float>& noise, std::vector<float>& weights);

struct PosteriorProgress {
  int64_t step = 0;
  double loss = 0;        // running mean of the noisy networks' clipped loss
  double divergence = 0;  // nats
  double bound = 0;       // what these two would give
};

struct PosteriorTraining {
  int64_t steps = 5000;
  int draws = 4;                   // networks a step
  int samples = 25;                // of each
  double rate = 0.1;               // of the mean, in scales of the prior
  double deviation_rate = 0.03;    // of ln sigma
  float start_deviation = 0.005F;  // sigma, of every coordinate
  double clip = 1, delta = 0.05;
  uint64_t seed = 0;
  int threads = 1;
  std::function<void(const PosteriorProgress&)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: ends where it is
};

Posterior train_posterior(const Coordinates& coordinates, const GaussianPrior& prior,
                          const std::vector<float>& trained, const LabelledSamples& data,
                          const PosteriorTraining& options);

}  // namespace posattn::bounds

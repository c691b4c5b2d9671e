// Finds a posterior with a small bound: mean and deviations by Adam on
//   loss + KL / (m ln(p (1-q) / (q (1-p)))),   p = klinv(q, (KL + ln(4 sqrt(m) / delta)) / m),
// whose gradient is that of the bound p itself up to a factor: dp/dc and dp/dq of the inverse kl
// have this ratio. q is a running mean of the noisy networks' clipped loss. Whatever it finds, the
// certificate holds: nothing here needs to be trusted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "posattn/bounds/certificate/collapsed_engine.h"
#include "posattn/bounds/certificate/gaussians.h"

namespace posattn::bounds {

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

// The loss of networks drawn from a posterior.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/collapsed_engine.h"
#include "posattn/bounds/certificate/coordinates.h"
#include "posattn/bounds/certificate/gaussians.h"

namespace posattn::bounds {

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

}  // namespace posattn::bounds

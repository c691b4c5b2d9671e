// A PAC-Bayes certificate of a trained run: a bound on the risk of a noisy version of its network
// that training data alone prove, docs/bounds-certificate.md. The prior lies at the initial
// weights, which the run's seed alone decides, the posterior starts at the trained ones, and both
// are Gaussians over the collapsed network's numbers.
#pragma once

#include "posattn/bounds/certificate/collapsed_engine.h"
#include "posattn/bounds/certificate/posterior_training.h"
#include "posattn/model/file/model_file.h"
#include "posattn/training/run_config.h"

namespace posattn::bounds {

// Predictors without a network, with which a certificate is to be compared. Losses are clipped and
// in units of b^2.

struct SimplePredictors {
  double constant = 0;  // of each node: the mean or the median, whichever is better
  double linear = 0;    // of each node: affine in all inputs, by least squares
};

// Fitted to `training`, measured on `fresh`.
SimplePredictors simple_predictors(const LabelledSamples& training, const LabelledSamples& fresh,
                                   double clip);

struct CertifiedRun {
  std::string name;  // for errors: the run's folder
  RunConfig config;
  Model model;
};

struct CertifyOptions {
  double delta = 0.05;
  double clip = 1;                 // b
  std::optional<int64_t> samples;  // m as the user believes it to be
  int64_t steps = 5000;            // of the posterior's training
  int64_t draws = 20'000;          // Monte Carlo
  int64_t fresh_samples = 50'000;  // for what is measured, not proved
  int threads = 1;
  std::function<void(const PosteriorProgress&)> progress = {};
  std::function<void(int64_t)> drawn = {};  // so many of all_draws more; called from all threads
  const std::atomic<bool>* stop = nullptr;
};

// One network drawn from the posterior. Losses here and below are clipped, between 0 and b^2.
struct DrawnNetwork {
  double bound = 0;  // at delta
  double training_loss = 0, fresh_loss = 0;
  double log_ratio = 0;  // ln dQ/dP, with the cost of the scales
};

struct Certificate {
  int64_t samples = 0;      // m
  int64_t coordinates = 0;  // numbers of the collapsed network
  double divergence = 0;    // KL(posterior || prior), nats
  double cost = 0;          // of the prior's scales, nats

  double bound = 0;       // on the risk of the randomised network
  double loss = 0;        // its training loss: the Monte-Carlo mean
  double loss_bound = 0;  // and what that is at most
  double fresh_loss = 0;

  DrawnNetwork drawn;        // the first one
  DrawnNetwork best_of_ten;  // at delta / 10 each

  double plain_training_loss = 0, plain_fresh_loss = 0;  // the trained network, without noise
  double hold_out_bound = 0;  // its risk, from 1,000 samples that training did not see
  SimplePredictors simple;    // on fresh samples
};

// The number of noisy networks that a certificate draws after its steps.
int64_t all_draws(const CertifyOptions& options);

// Throws Error(configuration) with the reason where a certificate would not hold: a model that does
// not collapse, training samples that changed or that the first weights may have seen, another m.
void check_certifiable(const CertifiedRun& run, const CertifyOptions& options);

// Nothing when stopped. A pure function of the run and of delta, clip, steps, draws.
std::optional<Certificate> certify(const CertifiedRun& run, const CertifyOptions& options);

// One of the `certificates` of `posattn certify --json` (docs/files.md), which took so many
// seconds; certify.cc writes it.
std::string to_json(const CertifiedRun& run, const CertifyOptions& options,
                    const Certificate& certificate, double seconds);

}  // namespace posattn::bounds

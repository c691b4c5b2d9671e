#include "posattn/bounds/certificate/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/bounds/bound_report.h"
#include "posattn/bounds/certificate/gaussians.h"
#include "posattn/bounds/collapsed_network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run.h"

namespace posattn::bounds {
namespace {

constexpr int64_t hold_out_samples = 1000;
constexpr int drawn_networks = 10;
constexpr int64_t most_fresh_draws = 4000;

// Streams of Purpose::posterior_draws.
enum class Draws : uint32_t { training_loss, fresh_loss, networks };

LabelledSamples labelled(const Dataset& set) { return {set.inputs, set.targets, set.samples}; }

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The data that the steps below share.
struct Setting {
  const Coordinates& coordinates;
  const GaussianPrior& prior;
  const Posterior& posterior;
  const PricedVariances& scales;
  LabelledSamples training, fresh;
  uint64_t seed = 0;
};

bool stopped(const CertifyOptions& options) { return options.stop != nullptr && *options.stop; }

int64_t fresh_draws(const CertifyOptions& options) {
  return std::min(options.draws, most_fresh_draws);
}

void state_randomised(const Setting& setting, const CertifyOptions& options,
                      Certificate& certificate) {
  MonteCarlo monte_carlo{.draws = options.draws,
                         .clip = options.clip,
                         .seed = setting.seed,
                         .variant = static_cast<uint32_t>(Draws::training_loss),
                         .threads = options.threads,
                         .drawn = options.drawn,
                         .stop = options.stop};
  certificate.loss =
      mean_of(noisy_losses(setting.coordinates, setting.posterior, setting.training, monte_carlo));
  certificate.loss_bound = expectation_bound(certificate.loss, options.draws, options.delta / 2);
  certificate.bound =
      randomised_bound(certificate.loss_bound, certificate.divergence + certificate.cost,
                       certificate.samples, options.delta);
  monte_carlo.draws = fresh_draws(options);
  monte_carlo.variant = static_cast<uint32_t>(Draws::fresh_loss);
  certificate.fresh_loss =
      mean_of(noisy_losses(setting.coordinates, setting.posterior, setting.fresh, monte_carlo));
}

void state_drawn(const Setting& setting, const CertifyOptions& options, Certificate& certificate) {
  std::vector<float> noise(setting.coordinates.size()), weights(noise.size());
  const std::vector<float> deviations = deviations_of(setting.posterior);
  for (int d = 0; d < drawn_networks && !stopped(options); ++d) {
    RandomStream random(setting.seed, Purpose::posterior_draws,
                        static_cast<uint32_t>(Draws::networks), static_cast<uint32_t>(d));
    fill_normal(random, noise);
    add_noise(setting.posterior.mean, deviations, noise, weights);
    DrawnNetwork network;
    network.log_ratio =
        setting.prior.log_ratio(setting.posterior, setting.scales.variances, noise) +
        setting.scales.cost;
    network.training_loss =
        loss_on(setting.coordinates, weights, setting.training, options.clip, options.threads);
    const auto bound_at = [&](double delta) {
      return drawn_bound(network.training_loss, network.log_ratio, certificate.samples, delta);
    };
    network.bound = bound_at(options.delta);
    const double shared = bound_at(options.delta / drawn_networks);
    const bool best = d == 0 || shared < certificate.best_of_ten.bound;
    if (d != 0 && !best) continue;
    network.fresh_loss =
        loss_on(setting.coordinates, weights, setting.fresh, options.clip, options.threads);
    if (d == 0) certificate.drawn = network;
    network.bound = shared;
    if (best) certificate.best_of_ten = network;
  }
}

// From units of b^2.
void scale_losses(Certificate& certificate, double square) {
  for (double* value :
       {&certificate.bound, &certificate.loss, &certificate.loss_bound, &certificate.fresh_loss,
        &certificate.plain_training_loss, &certificate.plain_fresh_loss,
        &certificate.hold_out_bound, &certificate.simple.constant, &certificate.simple.linear}) {
    *value *= square;
  }
  for (DrawnNetwork* network : {&certificate.drawn, &certificate.best_of_ten}) {
    for (double* value : {&network->bound, &network->training_loss, &network->fresh_loss}) {
      *value *= square;
    }
  }
}

nlohmann::ordered_json drawn_json(const DrawnNetwork& network) {
  return {{"bound", network.bound},
          {"training_loss", network.training_loss},
          {"fresh_loss", network.fresh_loss},
          {"log_ratio", network.log_ratio}};
}

}  // namespace

int64_t all_draws(const CertifyOptions& options) { return options.draws + fresh_draws(options); }

void check_certifiable(const CertifiedRun& run, const CertifyOptions& options) {
  const RunConfig& config = run.config;
  const auto refuse = [&](const std::string& why, const std::string& expected,
                          const std::string& hint = {}) {
    throw Error(ExitCode::configuration, fmt::format("'{}' {}", run.name, why), expected, hint);
  };
  collapse(run.model.spec, to_double(run.model.parameters), run.name);
  if (run.model.spec.causal) {
    refuse("has causal attention, whose zeros no noise may touch", "attention between all nodes");
  }
  if (config.fresh) {
    refuse("was trained on new samples every epoch", "a training set of m samples",
           "its training loss is a test loss already");
  }
  if (config.variable_length) {
    refuse("was trained on several lengths, so its samples are not drawn alike", "one length");
  }
  if (!config.from.empty()) {
    refuse("started from the weights of a model file, which may have seen the training set",
           "initial weights that follow from the seed alone");
  }
  if (options.samples && *options.samples != config.samples) {
    refuse(fmt::format("was trained on {} samples, not {}", config.samples, *options.samples),
           "the run's own m: the certificate speaks of the set that it was trained on",
           fmt::format("posattn train --samples {}", *options.samples));
  }
  if (config.samples < fewest_certified_samples) {
    refuse(fmt::format("was trained on {} samples", config.samples),
           fmt::format("at least {}", fewest_certified_samples));
  }
  if (std::ranges::count(loss_mask(task_of(config), static_cast<int>(config.length)), 0) > 0) {
    refuse(fmt::format("has a task ({}) that leaves outputs out of its loss", config.task),
           "a task all of whose outputs count");
  }
}

std::optional<Certificate> certify(const CertifiedRun& run, const CertifyOptions& options) {
  check_certifiable(run, options);
  const RunState first = initial_state(run.config);
  const CollapsedNetwork trained = collapse(run.model.spec, to_double(run.model.parameters)),
                         initial = collapse(run.model.spec, to_double(first.parameters));
  const Coordinates coordinates(initial, run.model.spec.biases != Biases::none);
  const GaussianPrior prior(coordinates.groups(), coordinates.values(initial));
  const std::vector<Dataset> training_sets = training_data(run.config, 1, options.threads);
  const Dataset fresh_set = fresh_samples_of(run.model, options.fresh_samples, options.threads);
  const LabelledSamples training = labelled(training_sets.front()), fresh = labelled(fresh_set);

  const uint64_t seed = run.config.weight_seed_used();
  PosteriorTraining posterior_training;
  posterior_training.steps = options.steps;
  posterior_training.clip = options.clip;
  posterior_training.delta = options.delta;
  posterior_training.seed = seed;
  posterior_training.threads = options.threads;
  posterior_training.progress = options.progress;
  posterior_training.stop = options.stop;
  const Posterior posterior = train_posterior(coordinates, prior, coordinates.values(trained),
                                              training, posterior_training);
  if (stopped(options)) return std::nullopt;

  const PricedVariances scales = prior.on_grid(prior.best_variances(posterior));
  Certificate certificate;
  certificate.samples = training.samples;
  certificate.coordinates = coordinates.size();
  certificate.divergence = prior.divergence(posterior, scales.variances);
  certificate.cost = scales.cost;
  const Setting setting{coordinates, prior, posterior, scales, training, fresh, seed};
  state_randomised(setting, options, certificate);
  state_drawn(setting, options, certificate);
  if (stopped(options)) return std::nullopt;  // what they say is of some networks only

  const double square = options.clip * options.clip;
  const auto plain_loss = [&](const Dataset& data) {
    return clipped_loss(run.model, data, options.clip, options.threads).mean / square;
  };
  certificate.plain_training_loss = plain_loss(training_sets.front());
  certificate.plain_fresh_loss = plain_loss(fresh_set);
  certificate.hold_out_bound =
      expectation_bound(plain_loss(fresh_samples_of(run.model, hold_out_samples, options.threads)),
                        hold_out_samples, options.delta);
  certificate.simple = simple_predictors(training, fresh, options.clip);
  scale_losses(certificate, square);
  return certificate;
}

// A certificate as JSON.

std::string to_json(const CertifiedRun& run, const CertifyOptions& options,
                    const Certificate& certificate, double seconds) {
  const nlohmann::ordered_json document = {{"run", run.name},
                                           {"task", run.config.task},
                                           {"architecture", run.config.architecture},
                                           {"seed", run.config.seed},
                                           {"length", run.config.length},
                                           {"width", run.config.width},
                                           {"depth", run.model.spec.depth},
                                           {"samples", certificate.samples},
                                           {"delta", options.delta},
                                           {"clip", options.clip},
                                           {"steps", options.steps},
                                           {"draws", options.draws},
                                           {"coordinates", certificate.coordinates},
                                           {"divergence", certificate.divergence},
                                           {"cost", certificate.cost},
                                           {"randomised",
                                            {{"bound", certificate.bound},
                                             {"training_loss", certificate.loss},
                                             {"training_loss_bound", certificate.loss_bound},
                                             {"fresh_loss", certificate.fresh_loss}}},
                                           {"drawn", drawn_json(certificate.drawn)},
                                           {"best_of_ten", drawn_json(certificate.best_of_ten)},
                                           {"plain",
                                            {{"training_loss", certificate.plain_training_loss},
                                             {"fresh_loss", certificate.plain_fresh_loss},
                                             {"hold_out_bound", certificate.hold_out_bound}}},
                                           {"constant", certificate.simple.constant},
                                           {"linear", certificate.simple.linear},
                                           {"seconds", seconds}};
  return document.dump();
}

}  // namespace posattn::bounds

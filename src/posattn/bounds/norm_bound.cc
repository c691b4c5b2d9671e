#include "posattn/bounds/norm_bound.h"

#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {
namespace {

// The share of the error that is left to attention, where that is covered (theta).
constexpr double attention_share = 0.1;

// ln sqrt(ln(2 points + 1))
double log_root_points(double points) { return std::log(std::log(2 * points + 1)) / 2; }

std::vector<CoveredMatrix> covered_matrices(const NetworkNorms& norms, const Propagation& travel,
                                            double samples) {
  const double nodes = norms.nodes;
  const double states = log_root_points(samples * nodes),
               pairs = log_root_points(samples * nodes * nodes);
  std::vector<CoveredMatrix> result;
  for (int l = 0; l < norms.depth(); ++l) {
    const LayerNorms& layer = norms.layers[l];
    const double sensitivity = travel.sensitivity[l];
    result.push_back({.name = "T",
                      .layer = l,
                      .log_sensitivity = sensitivity,
                      .log_size = std::log(row_factor) + layer.rows +
                                  travel.joined_state(l, layer.heads()) + states});
    for (size_t h = 0; h < layer.scores.size(); ++h) {
      result.push_back({.name = fmt::format("M.{}", h),
                        .layer = l,
                        .log_sensitivity = sensitivity + layer.maps[1 + h] + travel.state[l],
                        .log_size = layer.scores_frobenius[h] + travel.score_state(l) + pairs});
    }
  }
  result.push_back(
      {.name = "out",
       .layer = norms.depth(),
       .log_sensitivity = 0,
       .log_size = norms.output_joined + log_sum({2 * travel.state.back(), 0}) / 2 + states});
  return result;
}

// Lemma 8: ln S with S = sum of (P C)^(2/3). The best split of an error E costs S^3 / E^2.
double log_split(const std::vector<CoveredMatrix>& matrices) {
  std::vector<double> parts;
  parts.reserve(matrices.size());
  for (const CoveredMatrix& matrix : matrices) {
    parts.push_back((matrix.log_sensitivity + matrix.log_size) * 2 / 3);
  }
  return log_sum(parts);
}

double log_row_profiles(const NetworkNorms& norms) {
  double sum = 0;
  for (const LayerNorms& layer : norms.layers) sum += row_profiles(layer.out);
  return std::log(sum);
}

// ln of the entropy of all rows of attention, each with its equal part of the output error.
double log_attention_entropy(const NetworkNorms& norms, const Propagation& travel, double log_error,
                             double samples) {
  const double share = log_error - std::log(1.0 * norms.depth() * norms.heads());
  double sum = 0;
  for (int l = 0; l < norms.depth(); ++l) {
    for (int h = 0; h < norms.heads(); ++h) {
      const double log_radius =
          share - travel.sensitivity[l] - norms.layers[l].maps[1 + h] - travel.state[l];
      sum += norms.nodes * attention_row_entropy(log_radius, norms.nodes, samples);
    }
  }
  return std::log(sum);
}

// Both bounds fall with m like 1 / sqrt(m), up to factors of sqrt(ln m): bisection in ln m.
template <class LogBound>
double smallest_log_samples(double log_gap, const LogBound& log_bound) {
  constexpr double thousandth = 1e-3;
  double too_few = 0, enough = 1;
  if (log_bound(1.0) <= log_gap) return 0;
  while (log_bound(std::exp(enough)) > log_gap) {
    too_few = enough;
    enough *= 2;
    if (enough > 600) return std::numeric_limits<double>::infinity();  // beyond 1e260
  }
  while (enough - too_few > thousandth) {
    const double middle = (too_few + enough) / 2;
    (log_bound(std::exp(middle)) <= log_gap ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

NormBound norm_bound(const NetworkNorms& exact, const BoundSetting& setting) {
  check(setting);
  const RoundedNorms rounded = on_grid(exact, BoundKind::norms);
  const NetworkNorms& norms = rounded.norms;
  NormBound bound;
  bound.grid_cost = rounded.cost;
  bound.propagation = propagate(norms, setting.range);
  bound.matrices = covered_matrices(norms, bound.propagation, setting.samples);
  bound.log_profiles = log_row_profiles(norms);
  const double split = log_split(bound.matrices);
  const double to_attention = norms.positional ? attention_share : 0;

  // Fills in the parts, so that those of the last radius asked for stay.
  const auto log_entropy = [&](double log_radius) {
    const double log_error = log_radius - std::log(2 * setting.clip);  // the loss is 2b-Lipschitz
    bound.log_matrices = 3 * split - 2 * (log_error + std::log(1 - to_attention));
    bound.log_attention =
        norms.positional
            ? log_attention_entropy(norms, bound.propagation, log_error + std::log(to_attention),
                                    setting.samples)
            : log_zero;
    return log_sum({bound.log_matrices, bound.log_profiles, bound.log_attention});
  };
  const Chain found = chain(log_entropy, setting.samples, setting.clip);
  log_entropy(std::log(setting.clip * setting.clip / 2) - found.links * std::log(2.0));
  bound.links = found.links;
  bound.log_average = found.log_average;
  bound.log_confidence =
      2 * std::log(setting.clip) +
      std::log((std::log(2 / setting.delta) + bound.grid_cost) / (2.0 * setting.samples)) / 2;
  bound.log_gap = log_sum({std::log(2.0) + bound.log_average, bound.log_confidence});
  return bound;
}

SamplesNeeded samples_needed(const NetworkNorms& norms, const BoundSetting& setting, double gap) {
  if (!(gap > 0) || !std::isfinite(gap)) {
    throw Error(ExitCode::usage, fmt::format("--samples-for {}", gap),
                "a gap above 0: the loss counts up to b^2");
  }
  const auto with = [&](double samples) {
    BoundSetting changed = setting;
    changed.samples = samples;
    return changed;
  };
  const double log_gap = std::log(gap);
  return {.gap = gap,
          .log_by_norms = smallest_log_samples(
              log_gap, [&](double m) { return norm_bound(norms, with(m)).log_gap; }),
          .log_by_count = smallest_log_samples(
              log_gap, [&](double m) { return std::log(count_bound(norms, with(m)).gap); })};
}

}  // namespace posattn::bounds

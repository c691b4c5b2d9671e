#include "posattn/bounds/network_norms.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/bounds/weight_norms.h"

namespace posattn::bounds {
namespace {

LayerNorms norms_of_layer(const CollapsedLayer& layer) {
  LayerNorms norms;
  norms.in = layer.in();
  norms.out = layer.out();
  Matrix joined(layer.out(), 0);
  for (const Matrix& map : layer.maps) {
    norms.maps.push_back(std::log(spectral_norm(map)));
    joined = with_columns(joined, map);
  }
  Matrix offset(layer.out(), 1);
  offset.values = layer.offset;
  joined = with_columns(joined, offset);
  norms.offset = std::log(length_of(layer.offset));
  norms.rows = std::log(two_one_norm(joined));
  norms.joined = std::log(spectral_norm(joined));
  for (size_t h = 0; h < layer.scores.size(); ++h) {
    const Matrix both = with_row(layer.scores[h], layer.score_offsets[h]);
    norms.scores.push_back(std::log(spectral_norm(layer.scores[h])));
    norms.score_offsets.push_back(std::log(length_of(layer.score_offsets[h])));
    norms.scores_frobenius.push_back(std::log(frobenius_norm(both)));
    norms.scores_joined.push_back(std::log(spectral_norm(both)));
  }
  return norms;
}

// ln of what head h makes of an error: of its values and, from data, of its scores.
double head_amplification(const LayerNorms& layer, int h, double state) {
  const double values = layer.maps[1 + h];
  if (layer.scores.empty()) return values;
  return values +
         log_sum({0, std::log(2.0) + layer.scores[h] + 2 * state, layer.score_offsets[h] + state});
}

const double log_base = std::log(grid_base);
const double log_floor = std::log(1e-6);
constexpr double rounding = 1e-12;  // of the singular values themselves

}  // namespace

NetworkNorms norms_of(const CollapsedNetwork& network) {
  NetworkNorms norms{.positional = network.positional, .nodes = network.nodes, .layers = {}};
  for (const CollapsedLayer& layer : network.layers) {
    norms.layers.push_back(norms_of_layer(layer));
  }
  const double output = length_of(network.output);
  norms.output = std::log(output);
  norms.output_joined = std::log(std::hypot(output, network.output_offset));
  return norms;
}

NetworkNorms with_scaled_queries_and_keys(NetworkNorms norms, double log_factor) {
  for (LayerNorms& layer : norms.layers) {
    for (auto* values :
         {&layer.scores, &layer.score_offsets, &layer.scores_frobenius, &layer.scores_joined}) {
      for (double& x : *values) x += 2 * log_factor;
    }
  }
  return norms;
}

double Propagation::joined_state(int layer, int heads) const {
  return log_sum({std::log(heads + 1.0) + 2 * state[layer], 0}) / 2;
}

double Propagation::score_state(int layer) const {
  return state[layer] + log_sum({2 * state[layer], 0}) / 2;
}

Propagation propagate(const NetworkNorms& norms, double range) {
  Propagation found;
  found.state.push_back(std::log(norms.positional ? range : std::hypot(range, 1.0)));
  for (const LayerNorms& layer : norms.layers) {
    const double state = found.state.back();
    std::vector<double> parts = {layer.maps[0]};
    for (int h = 0; h < layer.heads(); ++h) parts.push_back(head_amplification(layer, h, state));
    found.amplification.push_back(log_sum(parts));
    found.state.push_back(log_sum({log_sum(layer.maps) + state, layer.offset}));
  }
  found.sensitivity.assign(norms.layers.size(), norms.output);
  for (size_t l = norms.layers.size() - 1; l > 0; --l) {
    found.sensitivity[l - 1] = found.sensitivity[l] + found.amplification[l];
  }
  return found;
}

double rounded_up(double log_norm) {
  return std::ceil((std::max(log_norm, log_floor) + rounding) / log_base) * log_base;
}

double grid_cost(double rounded_log_norm) {
  const double j = std::round(std::abs(rounded_log_norm) / log_base);
  return std::log(1.5 * (j + 1) * (j + 2));
}

RoundedNorms on_grid(NetworkNorms norms, BoundKind kind) {
  double cost = 0;
  const auto round = [&](double& norm) {
    norm = rounded_up(norm);
    cost += grid_cost(norm);
  };
  const auto round_all = [&](std::vector<double>& all) {
    for (double& norm : all) round(norm);
  };
  for (LayerNorms& layer : norms.layers) {
    round_all(layer.maps);
    round(layer.offset);
    round(kind == BoundKind::norms ? layer.rows : layer.joined);
    round_all(layer.scores);
    round_all(layer.score_offsets);
    round_all(kind == BoundKind::norms ? layer.scores_frobenius : layer.scores_joined);
  }
  round(norms.output);
  round(norms.output_joined);
  return {.norms = std::move(norms), .cost = cost};
}

void check(const BoundSetting& setting) {
  const auto refuse = [](const std::string& what, const std::string& expected) {
    throw Error(ExitCode::usage, what, expected);
  };
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  if (!(setting.samples >= 1)) {
    refuse(fmt::format("--samples {:.0f}", setting.samples),
           "1 or more: the size of a training set");
  }
  if (!positive(setting.range)) {
    refuse(fmt::format("--range {}", setting.range), "a number above 0: inputs lie in [-R, R]");
  }
  if (!positive(setting.clip) || !positive(setting.clip * setting.clip)) {
    refuse(fmt::format("--clip {}", setting.clip),
           "a number above 0, as its square: squared errors count up to that");
  }
  if (!(setting.delta > 0 && setting.delta < 1)) {
    refuse(fmt::format("--delta {}", setting.delta), "a probability between 0 and 1");
  }
}

}  // namespace posattn::bounds

#include "posattn/bounds/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/norm_bound.h"
#include "posattn/bounds/weight_norms.h"

namespace posattn::bounds {
namespace {

constexpr int deepest = 64;
constexpr double smallest_log_factor = -20, largest_log_factor = 20;  // of W_Q and W_K
constexpr int curve_points = 41;
constexpr double curve_reach = 4;  // W_Q and W_K times e^-4 to e^4, in the figure

struct InitialNetwork {
  NetworkNorms norms;
  double log_query_key = log_zero;  // ln of the largest ||W_Q' W_K|| / sqrt(d_k)
};

InitialNetwork initial_network(const CrossingRequest& request, const char* architecture,
                               int depth) {
  ModelSpec spec;
  apply_preset(architecture, spec);
  spec.real_nodes = request.length;
  spec.width = spec.mlp_width = request.width;
  spec.heads = request.heads;
  spec.depth = depth;
  spec = resolve(spec);
  Parameters<float> initial(spec);
  initialise(initial, request.seed);
  const Parameters<double> parameters = to_double(initial);
  InitialNetwork network{.norms = norms_of(collapse(spec, parameters))};
  for (const LayerWeightNorms& layer : weight_norms(spec, parameters, {})) {
    for (int h = 0; h < spec.heads; ++h) {
      network.log_query_key =
          std::max(network.log_query_key, std::log(layer.at(fmt::format("QK.{}", h)).spectral));
    }
  }
  return network;
}

double log_bound_at(const InitialNetwork& network, double log_factor, const BoundSetting& setting) {
  return norm_bound(with_scaled_queries_and_keys(network.norms, log_factor), setting).log_gap;
}

// ln of the factor of W_Q and W_K at which (b) reaches `level`; (b) grows with it.
std::optional<double> factor_reaching(const InitialNetwork& network, double level,
                                      const BoundSetting& setting) {
  double low = smallest_log_factor, high = largest_log_factor;
  if (log_bound_at(network, low, setting) > level || log_bound_at(network, high, setting) < level) {
    return {};
  }
  constexpr int halvings = 40;
  for (int step = 0; step < halvings; ++step) {
    const double middle = (low + high) / 2;
    (log_bound_at(network, middle, setting) <= level ? low : high) = middle;
  }
  return low;
}

}  // namespace

int standard_depth_for(int hops) { return std::bit_width(static_cast<unsigned>(hops)) + 1; }

Crossing find_crossing(const CrossingRequest& request) {
  check(request.setting);
  for (const int depth : request.positional_depths) {
    if (depth >= 1 && depth <= deepest) continue;
    throw Error(ExitCode::usage, fmt::format("--crossing {}", depth),
                fmt::format("1 to {} layers", deepest));
  }
  Crossing crossing;
  for (const int depth : request.positional_depths) {
    const InitialNetwork network = initial_network(request, "positional", depth);
    crossing.positional.push_back(
        {.depth = depth, .log_bound = norm_bound(network.norms, request.setting).log_gap});
  }
  for (const int hops : request.hops) {
    if (hops < 1) throw Error(ExitCode::usage, fmt::format("--hops {}", hops), "1 or more");
    const int depth = standard_depth_for(hops);
    const InitialNetwork network = initial_network(request, "standard", depth);
    crossing.log_initial_norm = network.log_query_key;
    StandardCurve curve{.hops = hops, .depth = depth, .log_norms = {}, .log_bounds = {}};
    for (int k = 0; k < curve_points; ++k) {
      const double log_factor = curve_reach * (2.0 * k / (curve_points - 1) - 1);
      curve.log_norms.push_back(network.log_query_key + 2 * log_factor);
      curve.log_bounds.push_back(log_bound_at(network, log_factor, request.setting));
    }
    crossing.standard.push_back(std::move(curve));
    for (const PositionalLevel& level : crossing.positional) {
      const std::optional<double> factor =
          factor_reaching(network, level.log_bound, request.setting);
      crossing.points.push_back(
          {.hops = hops,
           .standard_depth = depth,
           .positional_depth = level.depth,
           .log_norm = factor ? std::optional(network.log_query_key + 2 * *factor) : std::nullopt});
    }
  }
  return crossing;
}

}  // namespace posattn::bounds

#include "posattn/bounds/norm_grid.h"

#include <algorithm>
#include <cmath>

namespace posattn::bounds {
namespace {

const double log_base = std::log(grid_base);
const double log_floor = std::log(1e-6);
constexpr double rounding = 1e-12;  // of the singular values themselves

}  // namespace

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

}  // namespace posattn::bounds

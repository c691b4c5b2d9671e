#include "posattn/bounds/propagation.h"

#include <cmath>

#include "posattn/bounds/log_space.h"

namespace posattn::bounds {
namespace {

// ln of what head h makes of an error: of its values and, from data, of its scores.
double head_amplification(const LayerNorms& layer, int h, double state) {
  const double values = layer.maps[1 + h];
  if (layer.scores.empty()) return values;
  return values +
         log_sum({0, std::log(2.0) + layer.scores[h] + 2 * state, layer.score_offsets[h] + state});
}

}  // namespace

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

}  // namespace posattn::bounds

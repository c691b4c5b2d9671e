#include "posattn/bounds/network_norms.h"

#include <cmath>

#include "posattn/bounds/matrix_norms.h"

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

}  // namespace posattn::bounds

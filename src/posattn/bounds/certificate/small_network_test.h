// For tests: small collapsed networks, and coordinates back as a network in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/coordinates.h"
#include "posattn/model/spec/parameters.h"

namespace posattn::bounds::testing {

inline ModelSpec small_spec(const std::string& preset) {
  ModelSpec spec;
  apply_preset(preset, spec);
  spec.real_nodes = 3;
  spec.width = spec.mlp_width = 4;
  spec.depth = 2;
  return resolve(spec);
}

inline CollapsedNetwork small_network(const std::string& preset, uint64_t seed) {
  const ModelSpec spec = small_spec(preset);
  Parameters<float> parameters(spec);
  initialise(parameters, seed);
  return collapse(spec, to_double(parameters));
}

// `like` with these coordinates.
inline CollapsedNetwork with_coordinates(CollapsedNetwork like, const Coordinates& coordinates,
                                         std::span<const double> values) {
  const auto read = [&](std::vector<double>& to, int64_t first) {
    for (size_t k = 0; k < to.size(); ++k) to[k] = values[first + static_cast<int64_t>(k)];
  };
  for (size_t l = 0; l < like.layers.size(); ++l) {
    const CoordinateLayer& from = coordinates.layers()[l];
    CollapsedLayer& layer = like.layers[l];
    for (size_t h = 0; h < from.maps.size(); ++h) read(layer.maps[h].values, from.maps[h]);
    if (from.offset >= 0) read(layer.offset, from.offset);
    for (size_t h = 0; h < from.scores.size(); ++h) {
      if (!like.positional) {
        read(layer.scores[h].values, from.scores[h]);
        read(layer.score_offsets[h], from.score_offsets[h]);
        continue;
      }
      Matrix& attention = layer.attention[h];
      read(attention.values, from.scores[h]);
      for (int i = 0; i < attention.rows; ++i) {
        double sum = 0;
        for (int j = 0; j < attention.columns; ++j) {
          sum += attention(i, j) = std::exp(attention(i, j));
        }
        for (int j = 0; j < attention.columns; ++j) attention(i, j) /= sum;
      }
    }
  }
  read(like.output, coordinates.output());
  if (coordinates.output_offset() >= 0) like.output_offset = values[coordinates.output_offset()];
  return like;
}

// Numbers in [-2, 2] for `samples` samples, and targets that are the running minimum.
struct SmallData {
  SmallData(int samples, int nodes) {
    RandomStream random(3, Purpose::test_data, 0, 0);
    for (int b = 0; b < samples; ++b) {
      float least = 2;
      for (int i = 0; i < nodes; ++i) {
        inputs.push_back(random.uniform(-2, 2));
        least = std::min(least, inputs.back());
        targets.push_back(least);
      }
    }
  }
  std::vector<float> inputs, targets;
};

}  // namespace posattn::bounds::testing

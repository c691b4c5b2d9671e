// Networks for tests of the bounds, made by a recipe that any language can follow: the paper's
// initial values, drawn by SplitMix64 in the order of the state dict, row after row. A number is
// (2u - 1) bound with u the upper 53 bits of the next word; biases that start at zero draw nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "posattn/bounds/collapsed_network.h"
#include "posattn/bounds/network_norms.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::bounds::testing {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  double uniform() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

struct NetworkShape {
  const char* architecture = "positional";
  int depth = 4;
  int width = 64;
  int length = 8;
};

inline ModelSpec spec_of(const NetworkShape& shape) {
  ModelSpec spec;
  apply_preset(shape.architecture, spec);
  spec.depth = shape.depth;
  spec.width = spec.mlp_width = shape.width;
  spec.real_nodes = shape.length;
  return resolve(spec);
}

inline Parameters<double> golden_parameters(const ModelSpec& spec, uint64_t seed = 1) {
  Parameters<double> parameters(spec);
  SplitMix64 random(seed);
  const auto fill = [&](const std::string& name, double bound) {
    for (double& w : parameters[name]) w = (2 * random.uniform() - 1) * bound;
  };
  const auto linear = [&](const std::string& map, int in) {
    fill(names::weight(map), 1 / std::sqrt(in));
    fill(names::bias(map), 1 / std::sqrt(in));
  };
  const auto xavier = [&](const std::string& map, int in, int out) {
    fill(names::weight(map), std::sqrt(6.0 / (in + out)));
  };
  linear(std::string(names::encoding), spec.input_size());
  for (int l = 0; l < spec.depth; ++l) {
    const int source = spec.source_size(), width = spec.width;
    xavier(names::of_layer(l, names::query_key), source, 2 * source * spec.heads);
    xavier(names::of_layer(l, names::value), width, width);
    xavier(names::of_layer(l, names::output), width, width);
    linear(names::of_layer(l, names::mlp_map(0)), 2 * width);
    linear(names::of_layer(l, names::mlp_map(1)), spec.mlp_width);
  }
  linear(std::string(names::decoding), spec.width);
  return parameters;
}

inline CollapsedNetwork golden_network(const NetworkShape& shape, uint64_t seed = 1) {
  const ModelSpec spec = spec_of(shape);
  return collapse(spec, golden_parameters(spec, seed));
}

inline NetworkNorms golden_norms(const NetworkShape& shape, uint64_t seed = 1) {
  return norms_of(golden_network(shape, seed));
}

}  // namespace posattn::bounds::testing

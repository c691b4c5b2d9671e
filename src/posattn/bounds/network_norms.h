// The norms of a collapsed network that the bounds read, each as its natural logarithm.
#pragma once

#include <vector>

#include "posattn/bounds/collapsed_network.h"

namespace posattn::bounds {

struct LayerNorms {
  int in = 0, out = 0;
  std::vector<double> maps;  // ln ||T_0||, .., ln ||T_H||
  double offset = 0;         // ln ||t||
  double rows = 0;           // ln ||[T_0 .. T_H t]||_{2,1}
  double joined = 0;         // ln ||[T_0 .. T_H t]||
  // One number per head, of standard networks only.
  std::vector<double> scores;            // ln ||M_h||
  std::vector<double> score_offsets;     // ln ||mu_h||
  std::vector<double> scores_frobenius;  // ln ||[M_h; mu_h']||_F
  std::vector<double> scores_joined;     // ln ||[M_h; mu_h']||

  int heads() const { return static_cast<int>(maps.size()) - 1; }
};

struct NetworkNorms {
  bool positional = true;
  int nodes = 0;  // N, with the scratch nodes
  std::vector<LayerNorms> layers;
  double output = 0;         // ln ||w||
  double output_joined = 0;  // ln ||(w, c)||

  int heads() const { return layers.front().heads(); }
  int depth() const { return static_cast<int>(layers.size()); }
};

NetworkNorms norms_of(const CollapsedNetwork& network);

// The norms after W_Q, W_K and their biases were multiplied by e^log_factor: scores grow by its
// square. Positional networks stay as they are.
NetworkNorms with_scaled_queries_and_keys(NetworkNorms norms, double log_factor);

}  // namespace posattn::bounds

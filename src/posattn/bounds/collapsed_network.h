// The collapsed network: everything linear between two ReLUs merged, key biases gone (lemma 1 of
// docs/bounds.md). It computes the same function as the model, exactly:
//
//   s_i <- relu(T_0 s_i + sum_h T_h (A_h s)_i + t)     layer after layer
//   f_i  = w . s_i + c
//
// where s_i = x_i at first and A_h is fixed (attention from positions), or s_i = [x_i | e_i] with
// e_i the one-hot row of node i and A_h = softmax over j of s_i' M_h s_j + mu_h' s_j (attention
// from data).
#pragma once

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"
#include "posattn/simulation/matrix.h"

namespace posattn::bounds {

using simulation::Matrix;

struct CollapsedLayer {
  std::vector<Matrix> maps;                        // T_0 .. T_H [out, in]
  std::vector<double> offset;                      // t [out]
  std::vector<Matrix> attention;                   // A_h [nodes, nodes]; positional only
  std::vector<Matrix> scores;                      // M_h [in, in]; standard only
  std::vector<std::vector<double>> score_offsets;  // mu_h [in]; standard only

  int in() const { return maps.front().columns; }
  int out() const { return maps.front().rows; }
  int heads() const { return static_cast<int>(maps.size()) - 1; }
};

struct CollapsedNetwork {
  bool positional = true;
  int real_nodes = 0;
  int nodes = 0;  // with the scratch nodes
  std::vector<CollapsedLayer> layers;
  std::vector<double> output;  // w
  double output_offset = 0;    // c

  int heads() const { return layers.front().heads(); }
};

// Throws Error(configuration) with the reason for a model that it does not cover: tokens, routes,
// residuals, normalisation, other activations, RoPE on data, several outputs, MLPs of more maps.
CollapsedNetwork collapse(const ModelSpec& spec, const Parameters<double>& parameters,
                          const std::string& name = "this model");

// s_i before the first layer, [nodes, in], of one sample [real nodes].
Matrix first_state(const CollapsedNetwork& network, std::span<const double> x);

// A_h on the state before a layer, [nodes, nodes].
Matrix attention_of(const CollapsedLayer& layer, int head, const Matrix& state);

// The state after a layer, [nodes, out].
Matrix run_layer(const CollapsedLayer& layer, const Matrix& state);

// [samples, real nodes] -> [samples, real nodes], in plain double loops: the oracle.
std::vector<double> forward(const CollapsedNetwork& network, std::span<const double> x,
                            int64_t samples);

}  // namespace posattn::bounds

// A standard Transformer in double, layer by layer, with what a copy of it must know: its words and
// its attention.
//
// The words u of a node are what a layer's input x = F u + f0 is linear in: the data and the node's
// place before the first layer, the hidden units of the MLP (which are not negative) after one.
#pragma once

#include <string>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/simulation/matrix.h"

namespace posattn::simulation {

struct StandardHead {
  AffineMap query, key;  // over x, both with the fourth root of d_k taken out
  AffineMap value;
  Matrix output;  // columns of W_O, [width, width / heads]
};

struct StandardLayer {
  AffineMap start;  // F and f0
  std::vector<StandardHead> heads;
  std::vector<double> output_bias;
  AffineMap mlp;  // up to its ReLU, over [x | attention]

  int words() const { return start.weight.columns; }
  int width() const { return start.weight.rows; }
  int hidden() const { return mlp.weight.rows; }
};

struct StandardNetwork {
  int real_nodes = 0, nodes = 0, data_columns = 0;
  std::vector<StandardLayer> layers;
  AffineMap decoder;  // over the words after the last layer

  int heads() const { return static_cast<int>(layers.front().heads.size()); }
};

// Throws Error(configuration) for a model of another architecture, which `name` names.
StandardNetwork read_standard(const Model& model, const std::string& name);

// Words before the first layer, [nodes, words].
Matrix first_words(const StandardNetwork& network, const float* input);

using Attention = std::vector<Matrix>;  // of each head, [nodes, nodes]

// One layer: the words after it. Attention is `frozen` where that is given, else `attention`
// receives it.
Matrix run_layer(const StandardLayer& layer, const Matrix& words, Attention* attention,
                 const Attention* frozen);

// Outputs of real nodes, [real_nodes, output_columns], from the words after the last layer.
std::vector<double> decode(const StandardNetwork& network, const Matrix& words);

}  // namespace posattn::simulation

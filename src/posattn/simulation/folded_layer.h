// A standard layer as the positional copy computes it: functions of one number, which become
// tables, between linear maps, which are exact.
//
//   A  s_ij = sum_r a_r(u_i) b_r(u_j) + linear(u_j),   a b = ((a + b)^2 - (a - b)^2) / 4
//   M  m_i  = max_j s_ij
//   B  e_ij = exp(s_ij - m_i)
//   C  t_ij = s_ij - m_i - log(sum_j e_ij),   G_jc = log(g_c(u_j))
//   D  p_ijc = exp(t_ij + G_jc), the weight of attention times channel c of the value
//   E  the MLP of [x_i | sum_j p_ijc], less what makes g_c positive: weights sum to one
//
// Terms that are the same for a whole row of scores are left out: softmax does not see them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "posattn/model/file/model_file.h"
#include "posattn/simulation/matrix.h"
#include "posattn/simulation/table.h"

namespace posattn::simulation {

// A standard Transformer in double, layer by layer, with what a copy of it must know: its words and
// its attention.
//
// The words u of a node are what a layer's input x = F u + f0 is linear in: the data and the node's
// place before the first layer, the hidden units of the MLP (which are not negative) after one.

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

// The function that a table computes. Tables of one layer share their number of pieces by this.
enum class Use { score, exponential, normaliser, value, weighted_value };
inline constexpr int uses = 5;
std::string_view letter_of(Use use);
Function function_of(Use use);

struct AffineForm {
  std::vector<double> weight;
  double constant = 0;

  double operator()(const double* words) const {
    return constant + dot(weight.data(), words, weight.size());
  }
};

// Tables are named by their index in FoldedLayer::tables.
struct ScoreProduct {
  AffineForm query, key;  // of u_i and u_j
  int of_sum = 0, of_difference = 0;
};
struct ValueChannel {
  AffineForm value;               // positive
  std::vector<double> to_hidden;  // what the channel adds to the MLP before its ReLU
  int logarithm = 0, weighted = 0;
};
struct FoldedHead {
  std::vector<double> linear;  // of u_j
  Matrix places;               // [nodes, nodes], added to scores; in the first layer only
  std::vector<ScoreProduct> products;
  std::vector<ValueChannel> channels;
  int exponential = 0, normaliser = 0;
};
struct FoldedLayer {
  AffineMap own;  // the MLP before its ReLU, over u_i
  std::vector<FoldedHead> heads;
  std::vector<Use> tables;
  int signed_words = 0;  // the first of the words; all others are not negative

  int words() const { return own.weight.columns; }
  int hidden() const { return own.weight.rows; }
  int product_count() const;
  int channel_count() const;
};

// The shares of scores and of values, in root mean square, that may be left out.
struct LeftOut {
  double scores = 0, values = 0;
};

// In as few terms as `left_out` allows over `words` (one matrix [nodes, words] per calibration
// input, before this layer).
FoldedLayer fold(const StandardLayer& layer, const std::vector<Matrix>& words, bool is_first,
                 int data_columns, LeftOut left_out);

// Functions as they are. With others in their place (`calibration.h`) a folded layer is the copy's.
struct ExactFunctions {
  double square(int, double z) const { return z * z; }
  double exponential(int, double z) const { return std::exp(z); }
  double normaliser(int, double z) const { return std::log(z); }
  // A value comes as `value` says and is weighted as `weighted` says, so that the logarithm between
  // them, which only positive numbers have, is theirs.
  double value(int, double z) const { return z; }
  double weighted(int, double log_weight, double value) const {
    return std::exp(log_weight) * value;
  }
};

// The words after the layer. A function's first argument is the index of its table.
template <class Functions>
Matrix run_folded(const FoldedLayer& layer, const Matrix& words, Functions& functions) {
  const int nodes = words.rows;
  Matrix hidden(nodes, layer.hidden());
  for (int i = 0; i < nodes; ++i) layer.own.apply(words.row(i), hidden.row(i));
  std::vector<double> scores(nodes);
  for (const FoldedHead& head : layer.heads) {
    Matrix keys(nodes, static_cast<int>(head.products.size())),
        values(nodes, static_cast<int>(head.channels.size()));
    std::vector<double> linear(nodes);
    for (int j = 0; j < nodes; ++j) {
      const double* u = words.row(j);
      linear[j] = dot(head.linear.data(), u, head.linear.size());
      for (int r = 0; r < keys.columns; ++r) keys(j, r) = head.products[r].key(u);
      for (int c = 0; c < values.columns; ++c) {
        values(j, c) = functions.value(head.channels[c].logarithm, head.channels[c].value(u));
      }
    }
    for (int i = 0; i < nodes; ++i) {
      for (int j = 0; j < nodes; ++j) {
        scores[j] = linear[j] + (head.places.rows > 0 ? head.places(i, j) : 0);
      }
      for (int r = 0; r < keys.columns; ++r) {
        const ScoreProduct& term = head.products[r];
        const double a = term.query(words.row(i));
        for (int j = 0; j < nodes; ++j) {
          const double b = keys(j, r);
          scores[j] +=
              (functions.square(term.of_sum, a + b) - functions.square(term.of_difference, a - b)) /
              4;
        }
      }
      const double greatest = *std::ranges::max_element(scores);
      double sum = 0;
      for (int j = 0; j < nodes; ++j)
        sum += functions.exponential(head.exponential, scores[j] - greatest);
      const double shift = greatest + functions.normaliser(head.normaliser, sum);
      for (int c = 0; c < values.columns; ++c) {
        const ValueChannel& channel = head.channels[c];
        double mixed = 0;
        for (int j = 0; j < nodes; ++j) {
          mixed += functions.weighted(channel.weighted, scores[j] - shift, values(j, c));
        }
        for (int k = 0; k < hidden.columns; ++k) hidden(i, k) += mixed * channel.to_hidden[k];
      }
    }
  }
  for (double& u : hidden.values) u = u < 0 ? 0 : u;  // NaN stays
  return hidden;
}

}  // namespace posattn::simulation

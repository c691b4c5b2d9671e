// A standard layer as the positional copy computes it: functions of one number, which become
// tables, between linear maps, which are exact.
//
//   A  s_ij = sum_r a_r(u_i) b_r(u_j) + linear(u_j),   a b = ((a + b)^2 - (a - b)^2) / 4
//   G  G_jc = log(g_c(u_j)), where g_c is channel c of the values, made positive
//   S  L_i = log sum_j exp(s_ij) and P_ic = log sum_j exp(s_ij + G_jc), key by key:
//      log(e^L + e^s) = L + softplus(s - L)
//   D  exp(P_ic - L_i), the mean of channel c by the weights of attention
//
// Then comes the MLP of [x_i | means], less what makes g_c positive: weights sum to one. Nothing
// overflows and nothing is divided. Terms that are the same for a whole row of scores are left out:
// softmax does not see them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "posattn/model/file/model_file.h"
#include "posattn/simulation/key_plan.h"
#include "posattn/simulation/matrix.h"
#include "posattn/simulation/table.h"
#include "posattn/tasks/dataset.h"

namespace posattn::simulation {

// A standard Transformer in double, layer by layer, with what a copy of it must know: its words and
// its attention.
//
// The words u of a node are what a layer's input x = F u + f0 is linear in: the data, the token and
// the place of the node, both one-hot, before the first layer, and the hidden units of the MLP
// (which are not negative) after one.

struct StandardHead {
  AffineMap query, key;  // over x, both with the fourth root of d_k taken out
  AffineMap value;
  Matrix output;         // columns of W_O, [width, width / heads]
  bool rotated = false;  // queries and keys, by the node's place (RoPE)
};

// vectors [.., size], rotated as those of a node at `place`: s_ij = (R(i) q_i)^T R(j) k_j = q_i^T
// R(j - i) k_j.
void rotate(Matrix& vectors, int place);

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
  int real_nodes = 0, nodes = 0, data_columns = 0, vocabulary = 0;
  bool tokens_and_values = false;
  int first_read = 0, nodes_read = 0;  // the real nodes whose outputs count
  bool causal = false, rotated = false;
  std::vector<StandardLayer> layers;
  AffineMap decoder;  // over the words after the last layer

  int heads() const { return static_cast<int>(layers.front().heads.size()); }
  int place_words() const { return data_columns + vocabulary; }  // where they begin
};

// A model on samples of so many real nodes. Throws Error(configuration) for a model of another
// architecture, which `name` names.
StandardNetwork read_standard(const Model& model, const std::string& name, int real_nodes);

// Words of a sample before the first layer, [nodes, words].
Matrix first_words(const StandardNetwork& network, const Dataset& inputs, int64_t sample);

using Attention = std::vector<Matrix>;  // of each head, [nodes, nodes]

// One layer: the words after it. Attention is `frozen` where that is given, else `attention`
// receives it.
Matrix run_layer(const StandardLayer& layer, const Matrix& words, bool causal, Attention* attention,
                 const Attention* frozen);

// Outputs that count, [nodes_read, output_columns], from the words after the last layer.
std::vector<double> decode(const StandardNetwork& network, const Matrix& words);

constexpr int function_count = 4;
std::string_view letter_of(Function function);  // A, G, S, D

struct AffineForm {
  std::vector<double> weight;
  double constant = 0;

  double operator()(const double* words) const {
    return constant + dot(weight.data(), words, weight.size());
  }
};

// Tables are named by their index in FoldedLayer::tables. Each softplus of a node, in their order,
// has a table of its own: `combination` is the index of the first.
// A score is linear(u_j) + own(u_i) + the products. Without RoPE there is no `own`: softmax does
// not see what is the same for all keys.
struct ScoreProduct {
  AffineForm query, key;  // of u_i and u_j
  int of_sum = 0, of_difference = 0;
};
struct ValueChannel {
  AffineForm value;               // positive
  std::vector<double> to_hidden;  // what the channel adds to the MLP before its ReLU
  int logarithm = 0, combination = 0, exponential = 0;
};
struct FoldedScores {
  AffineForm linear, own;
  std::vector<ScoreProduct> products;
  double left_out = 0;  // at most of a score, by terms that are left out
};
struct FoldedHead {
  std::vector<FoldedScores> scores;  // the same in all steps or, with RoPE, those of each step
  Matrix places;  // [nodes, nodes], added to scores, not negative; in the first layer only
  std::vector<ValueChannel> channels;
  int combination = 0;

  const FoldedScores& at(int step) const { return scores[scores.size() == 1 ? 0 : step]; }
};
struct FoldedLayer {
  AffineMap own;  // the MLP before its ReLU, over u_i
  std::vector<FoldedHead> heads;
  std::vector<Function> tables;
  std::vector<double> left_out;  // at most of each hidden unit, by channels that are left out

  int hidden() const { return own.weight.rows; }
  int words() const { return own.weight.columns; }
  bool rotated() const { return !heads.front().scores.front().own.weight.empty(); }
  int product_count(int step) const;
  int product_count() const;  // at most, of a step
  int channel_count() const;
};

// Values may range so much wider than on calibration inputs. What makes them positive grows with
// it, and errors with that.
inline constexpr double value_margin = 1.25;

// The shares of scores and of values, in root mean square, that may be left out.
struct LeftOut {
  double scores = 0, values = 0;
};

// A layer that is folded in as few terms as may be over `words` (one matrix [nodes, words] for each
// calibration input, before this layer).
class Folding {
 public:
  // Before the first layer words that are places begin at `place_words`.
  Folding(const StandardLayer& layer, const std::vector<Matrix>& words, bool is_first,
          int place_words, const KeyPlan& plan);

  FoldedLayer without(LeftOut left_out) const;

 private:
  // Terms of scores and values with what they are at most. A term may be constant.
  struct Product {
    ScoreProduct term;
    AffineForm to_linear, to_own;
    double largest = 0;
    bool constant = false;
  };
  struct Channel {
    ValueChannel term;
    double offset = 0, largest = 0;  // added to make it positive
    bool constant = false;
  };
  struct Products {
    std::vector<Product> all;
    std::vector<double> sizes;  // root mean squares, which fall
  };
  struct Head {
    FoldedHead fixed;
    std::vector<Products> products;  // of each of the scores
    std::vector<Channel> channels;
    std::vector<double> channel_sizes;
  };
  void add_scores(const StandardHead& head, const Matrix& moments, bool is_first, int step,
                  Head& result) const;
  void add_values(const StandardHead& head, const Matrix& moments, Head& result);
  AffineForm centred(std::vector<double> weight) const;

  const StandardLayer& layer_;
  const std::vector<Matrix>& inputs_;
  int place_words_;
  const KeyPlan plan_;
  std::vector<double> mean_;  // of the words
  AffineMap own_;
  Matrix of_attention_;  // a part of the MLP's first map
  std::vector<Head> heads_;
};

// What a head's scores are made of, node by node.
struct ScoreParts {
  Matrix queries, keys;             // [nodes, products]
  std::vector<double> linear, own;  // `own`: zeros where there is none
};
ScoreParts score_parts(const FoldedScores& scores, const Matrix& words);

// The words after the layer by exact functions.
Matrix run_exactly(const FoldedLayer& layer, const Matrix& words, const KeyPlan& plan);

// Denominator and numerators of a node's softmax over some keys, as logarithms.
struct LogSums {
  bool any = false;
  double denominator = 0;
  std::vector<double> numerators;

  // Takes in those over other keys, as the softplus number `index` of the node.
  template <class Functions>
  void combine(const LogSums& other, const FoldedHead& head, int index, Functions& functions) {
    if (!other.any) return;
    if (!any) {
      *this = other;
      return;
    }
    denominator = functions.combined(head.combination + index, 0, denominator, other.denominator);
    for (size_t c = 0; c < numerators.size(); ++c) {
      numerators[c] =
          functions.combined(head.channels[c].combination + index, static_cast<int>(c) + 1,
                             numerators[c], other.numerators[c]);
    }
  }
};

// The functions as they are. With others in their place (`calibration.h`) a folded layer is the
// copy's. The first argument is the index of the table.
struct ExactFunctions {
  double square(int, double z) const { return z * z; }
  double logarithm(int, double z) const { return std::log(z); }
  // log(e^sum + e^other), of the denominator (chain 0) or of numerator chain - 1.
  double combined(int, int, double sum, double other) const {
    return sum + exactly(Function::softplus, other - sum);
  }
  void finish(const LogSums&) const {}  // all keys of a node are taken in
  double exponential(int, double z) const { return std::exp(z); }
};

// The words after the layer, in the copy's order.
template <class Functions>
Matrix run_folded(const FoldedLayer& layer, const Matrix& words, const KeyPlan& plan,
                  Functions& functions) {
  const int nodes = words.rows;
  Matrix hidden(nodes, layer.hidden());
  for (int i = 0; i < nodes; ++i) layer.own.apply(words.row(i), hidden.row(i));
  for (const FoldedHead& head : layer.heads) {
    const int channels = static_cast<int>(head.channels.size());
    std::vector<ScoreParts> parts;
    for (const FoldedScores& scores : head.scores) parts.push_back(score_parts(scores, words));
    Matrix logarithms(nodes, channels);
    for (int j = 0; j < nodes; ++j) {
      for (int c = 0; c < channels; ++c) {
        const ValueChannel& channel = head.channels[c];
        logarithms(j, c) = functions.logarithm(channel.logarithm, channel.value(words.row(j)));
      }
    }
    const auto sums_of = [&](int i, int j, int step) {
      const ScoreParts& part = parts[parts.size() == 1 ? 0 : step];
      double score = part.linear[j] + (head.places.rows > 0 ? head.places(i, j) : 0) + part.own[i];
      for (int r = 0; r < part.keys.columns; ++r) {
        const ScoreProduct& term = head.at(step).products[r];
        score += (functions.square(term.of_sum, part.queries(i, r) + part.keys(j, r)) -
                  functions.square(term.of_difference, part.queries(i, r) - part.keys(j, r))) /
                 4;
      }
      LogSums sums{true, score, std::vector<double>(channels, score)};
      for (int c = 0; c < channels; ++c) sums.numerators[c] += logarithms(j, c);
      return sums;
    };
    for (int i = 0; i < nodes; ++i) {
      std::vector<LogSums> sums(plan.copies);
      for (int c = 0; c < plan.copies; ++c) {
        for (int step = 0; step < plan.steps(); ++step) {
          const int j = plan.key(i, c, step);
          if (j >= 0) sums[c].combine(sums_of(i, j, step), head, step - 1, functions);
        }
      }
      for (int round = 0; round < plan.rounds(); ++round) {
        for (int c = 0; c < plan.copies; ++c) {
          const int partner = plan.partner(c, round);
          if (partner >= 0) {
            sums[c].combine(sums[partner], head, plan.steps() - 1 + round, functions);
          }
        }
      }
      functions.finish(sums[0]);
      for (int c = 0; c < channels; ++c) {
        const ValueChannel& channel = head.channels[c];
        const double mean =
            functions.exponential(channel.exponential, sums[0].numerators[c] - sums[0].denominator);
        for (int k = 0; k < hidden.columns; ++k) hidden(i, k) += mean * channel.to_hidden[k];
      }
    }
  }
  for (double& u : hidden.values) u = u < 0 ? 0 : u;  // NaN stays
  return hidden;
}

}  // namespace posattn::simulation

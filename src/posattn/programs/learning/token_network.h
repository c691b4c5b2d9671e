// A Transformer that is written by hand: y = x + ReLU attention, then y + MLP(y), without
// normalisation. A node holds a token of named columns; heads and hidden units are short sums of
// them. What is written becomes ordinary weights (ModelSpec with weighting relu, join add).
#pragma once

#include <utility>
#include <vector>

#include "posattn/model/spec/parameters.h"

namespace posattn {

// constant + sum of factor x column
struct TokenForm {
  std::vector<std::pair<int, double>> terms;
  double constant = 0;
};

// Adds to column `to` of node i: sum_j relu(score_ij) value_j / nodes.
struct TokenHead {
  // score_ij = sum of first(token i) x second(token j)
  std::vector<std::pair<TokenForm, TokenForm>> score;
  std::vector<std::pair<TokenForm, int>> values;  // of token j, and `to`
};

// Adds factor x relu(form) to columns of the same node, after the heads.
struct TokenUnit {
  TokenForm form;
  std::vector<std::pair<int, double>> to;
};

struct TokenLayer {
  std::vector<TokenHead> heads;
  std::vector<TokenUnit> units;
};

struct TokenNetwork {
  int nodes = 1, data_columns = 1;
  int columns = 1;
  // The token of a node: its data stand in the first columns; these are set by the node's number.
  std::vector<std::pair<int, std::vector<double>>> constants;  // column, [nodes]
  std::vector<TokenLayer> layers;
  int output = 0;  // column, of node 0
};

ModelSpec spec_of(const TokenNetwork& network);

// In double the weights are the numbers as they were written.
template <class T>
Parameters<T> weights_of(const TokenNetwork& network);

}  // namespace posattn

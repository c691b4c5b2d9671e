// A static program as a positional Transformer, layer by layer, before it becomes weights: which
// column holds which value, who reads from whom through which head, and the sparse MLP.
#pragma once

#include "posattn/programs/form/linear_form.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {

// One head of a layer: every node reads the same columns of the node its route names.
struct PlannedHead {
  Route route;               // weights, if any, are not negative and sum to at most 1
  std::vector<int> columns;  // of x; place p of the head delivers columns[p]
  // Where the route is a message: the columns of what its scores are made of.
  struct Scored {
    int destination = -1, square = -1, index = -1, index_square = -1, one = -1;
  };
  Scored scored = {};
};

// Terms of a hidden unit are numbered: column k of x is k, and place p of head h of what attention
// delivers is width + h head_size + p.
struct PlannedLayer {
  int round = 0;
  bool silent = false;             // attention delivers nothing: the local function goes on
  std::vector<PlannedHead> heads;  // a layer may use fewer than the network has
  // Whether heads attend to the data: all of a layer do, or none.
  bool scored() const { return !heads.empty() && heads.front().route.is_scored(); }
  std::vector<LinearForm> units;
  std::vector<LinearForm> columns;  // of x after the layer, over units; as many as the width
  std::vector<std::string> names;   // of what the columns hold after the layer; "" unused
  std::vector<int> words;           // the program's word in each column at a round's end, or -1
};

struct NetworkPlan {
  StaticProgram program;   // as lowered: with the word that holds 1, where constants are needed
  bool constants = false;  // words start with values by position: the encoder must see P (M1)
  int width = 1, heads = 1, hidden = 1;
  int head_size() const { return width / heads; }
  std::vector<int> start;  // column of each word at the start, or -1
  std::vector<PlannedLayer> layers;
  std::vector<int> outputs;  // columns of the results

  // The largest sum of |weight x value| over all integers at the start and all dot products of
  // integers; 0 where there is none.
  double largest_integer_sum = 0;
  std::string largest_integer_place;  // "round 3 (line 12)", "word 'x'"
};

// Sizes to embed the program in; 0: as small as possible.
struct PlanSizes {
  int width = 0, heads = 0, hidden = 0, depth = 0;
};

// Throws Error(configuration) where the sizes are too small.
NetworkPlan plan_network(StaticProgram program, const PlanSizes& sizes = {});

// Where a planned network holds the words of its program between rounds.

struct HeldWords {
  std::vector<int> layers;   // that carry the round out; none where the output does not need it
  int depth = 0;             // layers that are done when the round ends
  std::vector<int> columns;  // of each word of plan.program then; -1: not held
};

// Round -1: before the first.
HeldWords held_words(const NetworkPlan& plan, int round);

}  // namespace posattn

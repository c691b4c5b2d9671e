// A round's local function as ReLU layers: in each, hidden units are relu(linear form of the
// layer's inputs) and what goes on is linear in them:
//   min(a, b) = a - relu(a - b)      max(a, b) = a + relu(b - a)      |a| = 2 relu(-a) + a
//   min or max(x, p) = q + relu(p - x) - 2 relu(q - x)      with q = p or q = x, as a head delivers
//   [a >= b] = relu(a - b + 1) - relu(a - b)                          for integers
//   c ? a : b = relu(a - B c') - relu(-a - B c') + relu(b - B c) - relu(-b - B c),  c' = 1 - c
// and a value that only passes is x = relu(x) - relu(-x). A function whose ReLUs are nested takes
// several layers; between two of them each pending unit and each result is carried as one number,
// the part of its sum that is known.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/linear_form.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/lowering/atoms.h"

namespace posattn {

// One layer. Inputs are numbered: for the first layer own words, then receipts (words.size() + r);
// for later layers the outputs of the layer before.
struct LocalLayer {
  std::vector<LinearForm> units;    // over inputs; each through a ReLU
  std::vector<LinearForm> outputs;  // over units
  std::vector<std::string> names;   // of outputs: what they carry
  std::vector<Bounds> input_bounds;
};

struct LocalNetwork {
  std::vector<LocalLayer> layers;  // at least one
  std::vector<int> words;          // what the last layer's outputs are
};

// The layers that compute the words which are live after the round. `one`: the word that holds 1 on
// every processor, or -1 where there is none (no constant is needed).
LocalNetwork lower_local(const StaticProgram& program, const Round& round,
                         const std::vector<bool>& live_after, int one);

// Operations as sums of ReLUs: one row for each kind. What they mean is said in form/operation.h.
struct LoweredOperation {
  // The result as a sum of atoms, from the operands as such sums. Words and receipts have none: who
  // made the inputs knows them.
  LinearForm (*form)(Atoms& atoms, const Operator& what,
                     const std::vector<LinearForm>& x) = nullptr;
  // Whether that takes a 1.
  bool (*needs_one)(const Operator& what, const std::vector<int>& operands) = nullptr;
};

const LoweredOperation& lowered_operation(Operator::Kind kind);

}  // namespace posattn

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

#include "posattn/programs/form/expression.h"
#include "posattn/programs/form/linear_form.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {

// What the sums of a round's local function are made of: its inputs, ReLUs of sums, and bits that
// open and shut selections.

struct Atom {
  enum class Kind {
    input,  // of the round's first layer
    unit,   // relu(form)
    rail,   // form, as a number of its own: what opens and shuts a selection must be exactly 0 or 1
  };
  Kind kind;
  LinearForm form;  // over atoms
  int level;        // the layer after which it is known
  Bounds bounds;
};

class Atoms {
 public:
  // `one`: the input that holds 1 on every processor, or -1 where there is none.
  explicit Atoms(int one) : one_(one) {}

  void add_input(const WordType& type);
  size_t inputs() const { return inputs_; }  // they come first
  size_t size() const { return atoms_.size(); }
  const Atom& operator[](size_t atom) const { return atoms_[atom]; }

  Bounds bounds_of(const LinearForm& form) const;
  int level_of(const LinearForm& form) const;
  // Rails replaced by what they are the sum of.
  LinearForm inlined(const LinearForm& form) const;

  LinearForm constant(double number) const;
  LinearForm relu(const LinearForm& form);
  // a where the bit is 1, b where it is 0. `complement`: 1 - bit, where it is at hand. What opens
  // and shuts a unit is always B = choice_limit: throws Error(configuration) for a value beyond it.
  LinearForm selected(const LinearForm& bit, const LinearForm& a, const LinearForm& b,
                      const LinearForm* complement = nullptr);

  // A gated unit reads its rail as it is, so that x - B 0 is exactly x; the rest is one sum.
  bool is_rail(int atom, double factor) const;

 private:
  LinearForm relu(const LinearForm& form, double factor);  // by units of form / factor
  int find_or_add(Atom::Kind kind, const LinearForm& form, int level, Bounds bounds);
  int rail_of(const LinearForm& bit);
  bool is_small(const LinearForm& bit, const LinearForm& value) const;
  LinearForm opened(const LinearForm& bit, const LinearForm& value);

  std::vector<Atom> atoms_;
  size_t inputs_ = 0;
  int one_;
};

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

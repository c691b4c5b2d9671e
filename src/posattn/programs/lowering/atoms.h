// What the sums of a round's local function are made of: its inputs, ReLUs of sums, and bits that
// open and shut selections.
#pragma once

#include <vector>

#include "posattn/programs/form/expression.h"
#include "posattn/programs/form/linear_form.h"

namespace posattn {

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

}  // namespace posattn

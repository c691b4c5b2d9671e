// What each operation of a local function means: one row for each kind. How it becomes ReLUs is its
// row of lowering/local_network.cc.
#pragma once

#include "posattn/programs/form/expression.h"

namespace posattn {

constexpr int most_operands = 4;

// A choice is exact between numbers below this, which is what shuts the other number out.
constexpr double choice_limit = 0x1p60;

// A piece of a formula in words.
struct Phrase {
  // How tightly the outermost operation binds.
  enum Binding { sum = 1, product = 2, closed = 3 };

  std::string text;
  Binding binding = closed;

  // The text as an operand of something that binds this tightly.
  std::string inside(Binding least) const { return binding < least ? "(" + text + ")" : text; }
};

// Why an operation has no value here.
struct Refusal {
  std::string problem, expected;
};

// Words and receipts have a row without content: who reads them knows what they are.
struct Operation {
  Operator::Kind kind;
  const char* name = "";  // as in min(a, b)

  // NaN outside its domain, which goes on to all that depends on it.
  double (*value)(const Operator& what, const double* x) = nullptr;
  // From the operands' types; an integer's range is where the result must lie.
  WordType (*type)(const Operator& what, const WordType* x) = nullptr;
  // A bound on the error of the network's result where operand k is x[k] with an error of at most
  // e[k].
  double (*error)(const Operator& what, const double* x, const double* e) = nullptr;
  // How often it is rounded in double: by the interpreter, or in factors that the compiler adds up,
  // where the network has it as a sum.
  int roundings = 0;

  bool symmetric = false;  // operands may change places
  // What it amounts to without an operation of its own, or nullptr. Throws Error(configuration)
  // where it cannot be exact.
  Value (*shorter)(const Operator& what, const std::vector<Value>& x) = nullptr;
  Refusal (*refusal)(const Operator& what, const double* x) = nullptr;  // of what has no value
  Phrase (*text)(const Operator& what, const Phrase* x) = nullptr;      // nullptr: name(a, b)
};

const Operation& operation(Operator::Kind kind);

}  // namespace posattn

// What each operation of a local function means: one row for each kind. How it becomes ReLUs is its
// row of lowering/lowered_operation.cc.
#pragma once

#include <vector>

#include "posattn/programs/form/expression.h"
#include "posattn/programs/form/phrase.h"

namespace posattn {

// Words and receipts have a row without content: who reads them knows what they are.
struct Operation {
  Operator::Kind kind;
  const char* name = "";  // as in min(a, b)

  double (*value)(const Operator& what, const double* x) = nullptr;
  // From the operands' types; an integer's range is where the result must lie.
  WordType (*type)(const Operator& what, const WordType* x) = nullptr;
  // By how much the result may be off where operand k is off by e[k] at most.
  double (*error)(const Operator& what, const double* e) = nullptr;

  bool symmetric = false;  // operands may change places
  // What it amounts to without an operation of its own, or nullptr. Throws Error(configuration)
  // where it cannot be exact.
  Value (*shorter)(const Operator& what, const std::vector<Value>& x) = nullptr;
  Phrase (*text)(const Operator& what, const Phrase* x) = nullptr;  // nullptr: name(a, b)
};

const Operation& operation(Operator::Kind kind);

}  // namespace posattn

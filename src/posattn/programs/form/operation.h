// What each operation of a local function computes; the one place that says so in numbers.
#pragma once

#include <algorithm>
#include <cmath>

#include "posattn/programs/form/expression.h"

namespace posattn {

// operand(k): the value of the k-th operand. For all kinds but word and received, which read.
template <class T, class Operand>
T operation_result(Expression::Kind kind, double number, Operand operand) {
  switch (kind) {
    case Expression::Kind::word:
    case Expression::Kind::received:
      break;
    case Expression::Kind::constant:
      return static_cast<T>(number);
    case Expression::Kind::add:
      return operand(0) + operand(1);
    case Expression::Kind::scale:
      return static_cast<T>(number) * operand(0);
    case Expression::Kind::minimum:
      return std::min(operand(0), operand(1));
    case Expression::Kind::maximum:
      return std::max(operand(0), operand(1));
    case Expression::Kind::absolute:
      return std::abs(operand(0));
    case Expression::Kind::relu:
      return std::max(T{0}, operand(0));
    case Expression::Kind::at_least:
      return operand(0) >= operand(1) ? T{1} : T{0};
    case Expression::Kind::select:
      return operand(0) == T{1} ? operand(1) : operand(2);
    case Expression::Kind::exchange:
      return operand(2) == operand(0) ? std::max(operand(0), operand(1))
                                      : std::min(operand(0), operand(1));
  }
  return T{0};
}

}  // namespace posattn

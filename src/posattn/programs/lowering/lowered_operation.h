// Operations as sums of ReLUs: one row for each kind. What they mean is said in form/operation.h.
#pragma once

#include <vector>

#include "posattn/programs/lowering/atoms.h"

namespace posattn {

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

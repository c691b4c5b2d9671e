// The rows of the table of operations whose code is kernels/plain.
#pragma once

#include <vector>

#include "posattn/kernels/operations.h"

namespace posattn {

std::vector<Operation> plain_operations();

// A whole number from -1 to count - 1 out of an operand in [-2, 2): how rows that read tokens or
// labels are tested and timed.
inline int32_t class_of(double operand, int64_t count) {
  return static_cast<int32_t>((operand + 2) / 4 * static_cast<double>(count + 1)) - 1;
}

}  // namespace posattn

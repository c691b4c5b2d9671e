// Whole numbers divided and joined digit by digit: sums of the bits [x >= k]. Every step is two
// ReLUs of one layer, so the range of x decides the price.
#pragma once

#include "posattn/programs/form/expression.h"

namespace posattn::language {

// Throw Error(configuration) for reals, for a divisor below 1 and for too many steps.
Value quotient(const Value& x, double divisor);  // rounded down
Value remainder(const Value& x, double divisor);
Value exclusive_or(const Value& a,
                   const Value& b);  // of bits, or of integers that are never below 0

// A bit times a value; Error(configuration) where neither is a bit.
Value product(const Value& a, const Value& b);

}  // namespace posattn::language

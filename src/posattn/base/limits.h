// Limits of double that many files name.
#pragma once

#include <limits>

namespace posattn {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Whole numbers up to here are exact.
inline constexpr double whole_limit = 9007199254740992.0;  // 2^53

}  // namespace posattn

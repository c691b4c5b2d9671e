// A number from a file as a whole one.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace posattn {

inline constexpr const char* whole_number_expected =
    "a whole number from -2147483648 to 2147483647";

// Nothing for a fraction, NaN or what 32 bits do not hold.
template <class T>
std::optional<int32_t> whole_number(T value) {
  if constexpr (std::is_integral_v<T>) {
    if (!std::in_range<int32_t>(value)) return std::nullopt;
  } else {
    using Limits = std::numeric_limits<int32_t>;
    const auto wide = static_cast<double>(value);
    if (!(wide >= Limits::min() && wide <= Limits::max()) || wide != std::trunc(wide)) {
      return std::nullopt;
    }
  }
  return static_cast<int32_t>(value);
}

}  // namespace posattn

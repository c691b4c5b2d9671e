// NumPy's array files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <string>
#include <string_view>

#include "posattn/evaluation/table.h"

namespace posattn {

// Versions 1 to 3; little-endian f4, f8, i4, i8 in C order. The first axis counts the rows and the
// others are one row's numbers; a one-dimensional array is a single row. Anything else, a value
// that is not finite as a float, and bytes too few or too many throw Error(data).
// With expected_columns > 0 rows must have that many numbers.
Table parse_npy(std::string_view bytes, std::string_view name, int64_t expected_columns = 0);

// Version 1.0, f4, [rows, columns].
std::string to_npy(const Table& table);

// Whether these bytes begin like an array file.
bool looks_like_npy(std::string_view bytes);

}  // namespace posattn

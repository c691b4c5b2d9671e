// NumPy's array files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <string>
#include <string_view>

#include "posattn/evaluation/table.h"

namespace posattn {

// Versions 1 to 3; little-endian floats of 4 and 8 bytes and integers of 1 to 8 in C order. The
// first axis counts the rows and the others are one row's numbers; a one-dimensional array is a
// single row. Anything else, a value that is not finite as a float, and bytes too few or too many
// throw Error(data). With expected_columns > 0 rows must have that many numbers. A column of whole
// numbers may come from floats too.
Table parse_npy(std::string_view bytes, std::string_view name, int64_t expected_columns = 0,
                const RowPattern& pattern = {});

// Version 1.0, [rows, columns]: i4 for a table of whole numbers alone, f4 for one without; a table
// of both kinds cannot be written.
std::string to_npy(const Table& table);

// Whether these bytes begin like an array file.
bool looks_like_npy(std::string_view bytes);

}  // namespace posattn

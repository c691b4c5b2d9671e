// Tables as text. Fields are separated by commas (with spaces around them if you like) or, on a
// line without a comma, by spaces and tabs; '#' starts a comment; empty lines are skipped; a first
// line without any number is a header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/table.h"

namespace posattn {

// Strict: every field must be a finite number and all rows equally long; there must be a row.
// Throws Error(data) that starts with "name:line". With expected_columns > 0 rows must have that
// many numbers. A column of whole numbers takes 3, +3, 3.0 and 3e0.
Table parse_csv(std::string_view text, std::string_view name, int64_t expected_columns = 0,
                const RowPattern& pattern = {});

// The only row, in double precision.
std::vector<double> parse_csv_row(std::string_view text, std::string_view name);

// Whether one of the first two lines with content holds numbers and nothing else: the first may be
// a header. Text that people write is told from a table so.
bool looks_like_csv(std::string_view text);

// Comma-separated, each number in the fewest digits that read back as the same.
std::string to_csv(const Table& table);

}  // namespace posattn

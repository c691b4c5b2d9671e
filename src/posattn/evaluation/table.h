// Rows of numbers, as read from and written to CSV and NPY: one row per sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace posattn {

// The kinds of the columns, which repeat: first `whole` columns of whole numbers, then `real`
// columns of any numbers.
struct RowPattern {
  int whole = 0;
  int real = 1;
  bool is_whole(int64_t column) const { return column % (whole + real) < whole; }
};

struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values = {};   // [rows, the columns of any number]
  std::vector<int32_t> whole = {};  // [rows, the columns of whole numbers]
  RowPattern pattern = {};
};

// Throws Error(data) where there are more rows than one.
void check_one_row(const Table& table, std::string_view name);

// Reads NPY where the bytes begin with NPY's magic bytes, else CSV; `name` is for messages.
Table parse_table(std::string_view bytes, std::string_view name, int64_t expected_columns = 0,
                  const RowPattern& pattern = {});

// Reads a file, a pipe or "-", standard input. Throws Error(data) for one that is missing or too
// large (4 GiB, of a pipe 1 GiB).
std::string read_bytes(const std::filesystem::path& path);

inline constexpr const char* whole_number_expected =
    "a whole number from -2147483648 to 2147483647";

// The number as a whole one; nothing for a fraction, NaN or what 32 bits do not hold.
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

// CSV: tables as text. Fields are separated by commas (with spaces around them if you like) or, on
// a line without a comma, by spaces and tabs; '#' starts a comment; empty lines are skipped; a
// first line without any number is a header.
//
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

// NPY: NumPy's array files
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
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

// The lines of a text, wherever it was written: a byte order mark is left out, an empty last line
// is none. Without their "\n"; a "\r" before it stays.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::vector<std::string_view> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace posattn

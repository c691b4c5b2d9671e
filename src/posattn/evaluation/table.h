// Rows of numbers, as read from and written to CSV and NPY: one row per sample.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace posattn {

// What the columns hold, again and again: so many whole numbers, then so many of any kind.
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

// Throws Error(data) where there are more.
void check_one_row(const Table& table, std::string_view name);

}  // namespace posattn

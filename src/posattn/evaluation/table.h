// Rows of numbers, as read from and written to CSV and NPY: one row per sample.
#pragma once

#include <cstdint>
#include <vector>

namespace posattn {

struct Table {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values = {};  // [rows, columns]
};

}  // namespace posattn

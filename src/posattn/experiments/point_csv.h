// Reading tables of summarised points, with or without a last column of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/experiments/curves.h"

namespace posattn {

struct PointRow {
  PointSummary point;
  std::string text;  // of the last column, where the table has one
  int64_t line = 0;  // in the file
};

// The first line that is no comment must be the columns of to_csv, then `text_column` if it is not
// empty. Every point appears once. Throws Error(data) that starts with "name:line".
std::vector<PointRow> read_point_rows(std::string_view csv, const std::string& name,
                                      std::string_view text_column);

}  // namespace posattn

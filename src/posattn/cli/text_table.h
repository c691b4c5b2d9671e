// Plain text tables: the first column to the left, numbers to the right.
#pragma once

#include <vector>

#include "posattn/cli/terminal.h"

namespace posattn {

class TextTable {
 public:
  // The first `left_columns` are aligned to the left, the others to the right.
  explicit TextTable(std::vector<std::string> header, size_t left_columns = 1);

  void add_row(std::vector<std::string> cells);  // as many cells as the header
  std::string to_string() const;                 // lines without trailing spaces

 private:
  size_t left_columns_;
  std::vector<std::vector<std::string>> rows_;  // the header first
};

// A table of JSON objects: the heading of each column, and the key of its cells. Numbers that are
// not whole have four digits, and null is "-".
struct JsonColumn {
  const char* heading;
  const char* key;
};
std::string json_table(const Json& rows, const std::vector<JsonColumn>& columns,
                       size_t left_columns = 1);

// Four significant digits: enough to compare runs, short enough for a table.
std::string short_number(double value);

// Text wrapped to `columns`, each line after the first starting with `indent` spaces.
std::string wrapped(const std::string& text, int columns, int indent);

// Paragraphs, which an empty line separates, each wrapped.
std::string wrapped_paragraphs(const std::string& text, int columns);

}  // namespace posattn

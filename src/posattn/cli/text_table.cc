#include "posattn/cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace posattn {

TextTable::TextTable(std::vector<std::string> header, size_t left_columns)
    : left_columns_(left_columns) {
  rows_.push_back(std::move(header));
}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_string() const {
  std::vector<int> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(static_cast<size_t>(widths[i] - display_width(row[i])), ' ');
      if (i > 0) line += "  ";
      line += i < left_columns_ ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

namespace {

std::string json_cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const double number = value;
  constexpr double most = 1e7;  // whole numbers up to here have all their digits
  const bool is_whole = std::abs(number) <= most && number == std::round(number);
  return is_whole ? fmt::format("{:.0f}", number) : short_number(number);
}

}  // namespace

std::string json_table(const Json& rows, const std::vector<JsonColumn>& columns,
                       size_t left_columns) {
  std::vector<std::string> header;
  for (const JsonColumn& column : columns) header.emplace_back(column.heading);
  TextTable table(header, left_columns);
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const JsonColumn& column : columns) {
      const auto& value = row[column.key];
      cells.push_back(json_cell(value));
    }
    table.add_row(cells);
  }
  return table.to_string();
}

std::string short_number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value);  // never "-nan"
}

std::string wrapped(const std::string& text, int columns, int indent) {
  std::istringstream words(text);
  std::string result, word;
  int used = indent;
  while (words >> word) {
    const int width = display_width(word);
    if (used > indent && used + 1 + width > columns) {
      result += "\n" + std::string(static_cast<size_t>(indent), ' ');
      used = indent;
    } else if (used > indent) {
      result += " ";
      ++used;
    }
    result += word;
    used += width;
  }
  return result;
}

std::string wrapped_paragraphs(const std::string& text, int columns) {
  const size_t end = text.find("\n\n");
  const std::string first = wrapped(text.substr(0, end), columns, 0);
  return end == std::string::npos
             ? first
             : first + "\n\n" + wrapped_paragraphs(text.substr(end + 2), columns);
}

}  // namespace posattn

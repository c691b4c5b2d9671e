#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Without a comment.
std::string_view content(std::string_view line) { return trim(line.substr(0, line.find('#'))); }

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  if (line.find(',') != std::string_view::npos) {
    for (size_t start = 0; start <= line.size();) {
      const size_t end = std::min(line.find(',', start), line.size());
      fields.push_back(trim(line.substr(start, end - start)));
      start = end + 1;
    }
    return fields;
  }
  for (size_t start = 0; (start = line.find_first_not_of(blanks, start)) < line.size();) {
    const size_t end = std::min(line.find_first_of(blanks, start), line.size());
    fields.push_back(line.substr(start, end - start));
    start = end;
  }
  return fields;
}

enum class Reading { fine, no_number, too_large, not_finite, not_whole };

std::string_view without_plus(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  return field;
}

Reading read_number(std::string_view field, float& value) {
  field = without_plus(field);
  const char* end = field.data() + field.size();
  auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    // Too small is a fine zero, too large is not; a double can tell them apart.
    double wide = 0;
    error = std::from_chars(field.data(), end, wide).ec;
    if (error != std::errc() || std::abs(wide) >= 1) return Reading::too_large;
    value = static_cast<float>(wide);
  }
  if (error != std::errc() || stop != end) return Reading::no_number;
  return std::isfinite(value) ? Reading::fine : Reading::not_finite;
}

Reading read_number(std::string_view field, double& value) {
  field = without_plus(field);
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) return Reading::no_number;
  return error == std::errc() && std::isfinite(value) ? Reading::fine : Reading::not_finite;
}

Reading read_number(std::string_view field, int32_t& value) {
  field = without_plus(field);
  const char* end = field.data() + field.size();
  double wide = 0;  // holds every whole number of 32 bits
  const auto [stop, error] = std::from_chars(field.data(), end, wide);
  if (error == std::errc::invalid_argument || stop != end) return Reading::no_number;
  const std::optional<int32_t> whole = whole_number(wide);
  if (error != std::errc() || !whole) return Reading::not_whole;
  value = *whole;
  return Reading::fine;
}

const char* expected(Reading reading) {
  switch (reading) {
    case Reading::too_large:
      return "a number within 32-bit floating point";
    case Reading::not_finite:
      return "a finite number";
    case Reading::not_whole:
      return whole_number_expected;
    default:
      return "a number";
  }
}

// A field from a file that may hold anything, fit for a message.
std::string shown(std::string_view field) {
  constexpr size_t most = 40;
  if (field.size() <= most) return printable(field);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(field[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  return printable(field.substr(0, end)) + "...";
}

class CsvParser {
 public:
  // `exact` takes the numbers of any kind in place of the table, in double precision.
  CsvParser(std::string_view name, int64_t expected_columns, const RowPattern& pattern,
            std::vector<double>* exact = nullptr)
      : name_(name), expected_columns_(expected_columns), exact_(exact) {
    table_.pattern = pattern;
  }

  void add_line(std::string_view line) {
    ++line_number_;
    line = content(line);
    if (line.empty()) return;
    const std::vector<std::string_view> fields = split(line);
    if (std::exchange(at_start_, false) && is_header(fields)) {
      header_ = line;
      return;
    }
    check_count(static_cast<int64_t>(fields.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      if (table_.pattern.is_whole(static_cast<int64_t>(i))) {
        add_number(fields[i], i + 1, table_.whole);
      } else if (exact_ != nullptr) {
        add_number(fields[i], i + 1, *exact_);
      } else {
        add_number(fields[i], i + 1, table_.values);
      }
    }
    ++table_.rows;
  }

  Table take() {
    if (table_.rows == 0) {
      throw Error(ExitCode::data, fmt::format("{}: no rows of numbers", name_),
                  "one row of numbers per sample",
                  header_.find_first_of("+-.0123456789") != 0
                      ? ""
                      : fmt::format("'{}' is read as names of columns: separate numbers by commas",
                                    shown(header_)));
    }
    return std::move(table_);
  }

 private:
  static bool is_header(const std::vector<std::string_view>& fields) {
    for (const std::string_view field : fields) {
      float value = 0;
      if (read_number(field, value) != Reading::no_number) return false;
    }
    return true;
  }

  void check_count(int64_t count) {
    const std::string problem =
        fmt::format("{}:{}: {} number{}", name_, line_number_, count, count == 1 ? "" : "s");
    if (expected_columns_ > 0 && count != expected_columns_) {
      throw Error(ExitCode::data, problem, fmt::format("{} numbers per row", expected_columns_),
                  "one row per sample");
    }
    if (table_.rows == 0) {
      table_.columns = count;
      first_row_line_ = line_number_;
    } else if (count != table_.columns) {
      throw Error(ExitCode::data, problem,
                  fmt::format("{} numbers, as in line {}", table_.columns, first_row_line_),
                  "all rows must be equally long");
    }
  }

  template <class T>
  void add_number(std::string_view field, size_t column, std::vector<T>& numbers) const {
    T value = 0;
    const Reading reading = read_number(field, value);
    if (reading != Reading::fine) {
      throw Error(
          ExitCode::data,
          fmt::format("{}:{}: '{}' in column {}", name_, line_number_, shown(field), column),
          expected(reading));
    }
    numbers.push_back(value);
  }

  std::string name_;
  int64_t expected_columns_;
  std::vector<double>* exact_;
  int64_t line_number_ = 0;
  int64_t first_row_line_ = 0;
  bool at_start_ = true;
  std::string header_;
  Table table_;
};

}  // namespace

Table parse_csv(std::string_view text, std::string_view name, int64_t expected_columns,
                const RowPattern& pattern) {
  CsvParser parser(name, expected_columns, pattern);
  for (const std::string_view line : lines_of(text)) parser.add_line(line);
  return parser.take();
}

std::vector<double> parse_csv_row(std::string_view text, std::string_view name) {
  std::vector<double> numbers;
  CsvParser parser(name, 0, {}, &numbers);
  for (const std::string_view line : lines_of(text)) parser.add_line(line);
  check_one_row(parser.take(), name);
  return numbers;
}

bool looks_like_csv(std::string_view text) {
  int seen = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::vector<std::string_view> fields = split(content(line));
    if (fields.empty()) continue;
    const bool numbers = std::ranges::all_of(fields, [](std::string_view field) {
      float value = 0;
      return read_number(field, value) != Reading::no_number;
    });
    if (numbers) return true;
    if (++seen == 2) return false;
  }
  return false;
}

std::string to_csv(const Table& table) {
  fmt::memory_buffer text;
  auto value = table.values.begin();
  auto whole = table.whole.begin();
  for (int64_t row = 0; row < table.rows; ++row) {
    for (int64_t column = 0; column < table.columns; ++column) {
      if (column > 0) text.push_back(',');
      if (table.pattern.is_whole(column)) {
        fmt::format_to(std::back_inserter(text), "{}", *whole++);
      } else {
        fmt::format_to(std::back_inserter(text), "{}", *value++);
      }
    }
    text.push_back('\n');
  }
  return fmt::to_string(text);
}

}  // namespace posattn

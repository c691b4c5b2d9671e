#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/experiments/curves.h"

namespace posattn {
namespace {

constexpr std::string_view columns =
    "experiment,task,architecture,split,x,runs,min,q10,median,q90,max";
constexpr size_t number_of_columns = 11;

// Follows RFC 4180: a field with a comma or a quote stands in quotes, and its own quotes are
// doubled. A field that a reader could take for a comment stands in quotes too.
std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"") == std::string::npos && !field.starts_with('#')) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);  // never "-nan"
}

// A field from a file that may hold anything, fit for a message.
std::string shown(std::string_view field) {
  std::string text;
  for (const char c : field.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
  return field.size() > 40 ? text + "..." : text;
}

class PointReader {
 public:
  PointReader(std::string name, std::string_view text_column)
      : name_(std::move(name)), header_(columns), fields_(number_of_columns) {
    if (text_column.empty()) return;
    header_ += fmt::format(",{}", text_column);
    ++fields_;
  }

  void add_line(std::string_view line) {
    ++line_number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) return;
    if (!header_seen_) {
      if (line != header_) throw refusal(fmt::format("'{}'", shown(line)), "the line " + header_);
      header_seen_ = true;
      return;
    }
    const std::vector<std::string> fields = split(line);
    if (fields.size() != fields_) {
      throw refusal(fmt::format("{} fields", fields.size()), fmt::format("{} fields", fields_));
    }
    rows_.push_back({.point = point_of(fields),
                     .text = fields_ > number_of_columns ? fields.back() : "",
                     .line = line_number_});
  }

  std::vector<PointRow> take() {
    if (!header_seen_) throw refusal("the end of the file", "the line " + header_);
    return std::move(rows_);
  }

 private:
  Error refusal(const std::string& problem, const std::string& expected) const {
    return {ExitCode::data, fmt::format("{}:{}: {}", name_, line_number_, problem), expected};
  }

  std::vector<std::string> split(std::string_view line) const {
    std::vector<std::string> fields(1);
    size_t at = 0;
    while (at < line.size()) {
      if (line[at] == '"') {
        at = read_quoted(line, at, fields.back());
        if (at < line.size() && line[at] != ',') throw refusal("text after a quote", "a comma");
      }
      while (at < line.size() && line[at] != ',') fields.back() += line[at++];
      if (at < line.size()) fields.emplace_back();
      ++at;
    }
    return fields;
  }

  // From the opening quote to after the closing one.
  size_t read_quoted(std::string_view line, size_t at, std::string& field) const {
    for (++at; at < line.size(); ++at) {
      if (line[at] != '"') {
        field += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        field += line[++at];
      } else {
        return at + 1;
      }
    }
    throw refusal("a quote without its end", "all of a field on one line");
  }

  PointSummary point_of(const std::vector<std::string>& fields) {
    PointSummary point{.experiment = word(fields[0], "experiment"),
                       .task = word(fields[1], "task"),
                       .line = word(fields[2], "architecture"),
                       .split = split_of(fields[3]),
                       .x = std::nullopt,
                       .runs = runs_of_point(fields[5]),
                       .minimum = value(fields[6], "min"),
                       .q10 = value(fields[7], "q10"),
                       .median = value(fields[8], "median"),
                       .q90 = value(fields[9], "q90"),
                       .maximum = value(fields[10], "max")};
    if (!fields[4].empty()) point.x = x_of(fields[4]);
    check_order(point);
    if (!seen_.insert({point.experiment, point.task, point.line, point.split, point.x}).second) {
      throw refusal("a point for the second time", "every point once");
    }
    return point;
  }

  std::string word(const std::string& field, const char* column) const {
    if (field.empty()) throw refusal(fmt::format("no {}", column), "a name");
    return field;
  }

  Split split_of(const std::string& field) const {
    try {
      return split_from(field);
    } catch (const Error& error) {
      throw refusal(fmt::format("split '{}'", shown(field)), error.expected());
    }
  }

  int64_t runs_of_point(const std::string& field) const {
    int64_t runs = 0;
    if (!parse_exactly(field, runs) || runs < 1) {
      throw refusal(fmt::format("runs '{}'", shown(field)), "a whole number from 1");
    }
    return runs;
  }

  double value(const std::string& field, const char* column) const {
    double read = 0;
    if (!parse_exactly(field, read) || read < 0) {
      throw refusal(fmt::format("{} '{}'", column, shown(field)), "a number from 0, inf or nan");
    }
    return read;
  }

  double x_of(const std::string& field) const {
    const double x = value(field, "x");
    if (!std::isfinite(x)) throw refusal(fmt::format("x '{}'", field), "a finite number");
    return x;
  }

  // Nothing is known of a point: all five are NaN.
  void check_order(const PointSummary& point) const {
    const auto values = {point.minimum, point.q10, point.median, point.q90, point.maximum};
    const auto missing = std::count_if(values.begin(), values.end(),
                                       [](double quantity) { return std::isnan(quantity); });
    if (missing == static_cast<std::ptrdiff_t>(values.size())) return;
    if (missing > 0 || !std::is_sorted(values.begin(), values.end())) {
      throw refusal("quantiles out of order", "min <= q10 <= median <= q90 <= max");
    }
  }

  std::string name_, header_;
  size_t fields_;
  int64_t line_number_ = 0;
  bool header_seen_ = false;
  std::vector<PointRow> rows_;
  std::set<std::tuple<std::string, std::string, std::string, Split, std::optional<double>>> seen_;
};

}  // namespace

std::vector<PointRow> read_point_rows(std::string_view csv, const std::string& name,
                                      std::string_view text_column) {
  PointReader reader(name, text_column);
  for (const std::string_view line : split_lines(csv)) reader.add_line(line);
  return reader.take();
}

std::string to_csv(const std::vector<PointSummary>& points) {
  std::string text(columns);
  text += '\n';
  for (const PointSummary& point : points) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", quoted(point.experiment),
                        quoted(point.task), quoted(point.line), to_string(point.split),
                        point.x ? number(*point.x) : "", point.runs, number(point.minimum),
                        number(point.q10), number(point.median), number(point.q90),
                        number(point.maximum));
  }
  return text;
}

std::vector<PointSummary> points_from_csv(std::string_view csv, const std::string& name) {
  std::vector<PointSummary> points;
  for (PointRow& row : read_point_rows(csv, name, "")) points.push_back(std::move(row.point));
  return points;
}

}  // namespace posattn

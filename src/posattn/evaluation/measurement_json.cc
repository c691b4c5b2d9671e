#include "posattn/evaluation/measurement_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

// What a test of 0.1.0 holds.
constexpr std::string_view first_axis = "c";
constexpr std::string_view first_metrics[] = {"mse", "accuracy"};
constexpr std::string_view first_names[] = {"mse", "mse_over_c2", "accuracy"};

bool is_first_metric(std::string_view metric) {
  return std::ranges::find(first_metrics, metric) != std::end(first_metrics);
}

// The values of the axis c at which there is all that a test of 0.1.0 holds.
std::vector<double> whole_tests(std::span<const Measurement> rows) {
  std::vector<double> values = tested_values(rows, first_axis);
  std::erase_if(values, [&](double c) {
    return std::ranges::any_of(first_metrics, [&](std::string_view metric) {
      return !find_value(rows, {.axis = first_axis, .x = c, .metric = metric});
    });
  });
  return values;
}

// One list of a line; every error begins with `where`.
class RowReader {
 public:
  RowReader(std::string where, std::vector<Measurement>& rows)
      : where_(std::move(where)), rows_(rows) {
    for (const Measurement& row : rows_) seen_.insert({row.split, row.axis, row.x, row.metric});
  }

  JsonFields fields(const nlohmann::json& object) const { return {object, where_}; }

  void add(Measurement row) {
    check(row);
    expect(seen_.insert({row.split, row.axis, row.x, row.metric}).second,
           fmt::format("two values of {} at {} = {}", row.metric, row.axis, row.x), "each once");
    rows_.push_back(std::move(row));
  }

  void expect(bool right, const std::string& problem, const std::string& expected) const {
    if (!right) throw Error(ExitCode::data, where_ + ": " + problem, expected);
  }

 private:
  void check(const Measurement& row) const {
    expect(!row.metric.empty() && is_plain_line(row.metric) && is_plain_line(row.axis),
           "no metric, or control characters", "names of a metric and an axis");
    expect(std::isfinite(row.x), fmt::format("{} = {}", row.axis, row.x), "a finite number");
    const Metric* metric = known_metric(row.metric);
    if (metric == nullptr || std::isnan(row.value)) return;
    expect(!metric->is_derived(), row.metric,
           fmt::format("{}, which it follows from", metric->derived_from));
    expect(row.value >= 0 && row.value <= metric->greatest,
           fmt::format("{} {} at {} = {}", row.metric, row.value, row.axis, row.x),
           std::isinf(metric->greatest) ? "at least 0" : fmt::format("0 to {}", metric->greatest));
  }

  std::string where_;
  std::vector<Measurement>& rows_;
  std::set<std::tuple<Split, std::string, double, std::string>> seen_;
};

}  // namespace

RowsAsJson rows_to_json(std::span<const Measurement> rows, bool with_derived) {
  RowsAsJson json{Json::array(), Json::array()};
  const std::vector<double> whole = whole_tests(rows);
  for (const double c : whole) {
    Json test = {{first_axis, c}};
    for (const std::string_view name : first_names) {
      if (!with_derived && !is_first_metric(name)) continue;
      test[std::string(name)] =
          json_number(find_value(rows, {.axis = first_axis, .x = c, .metric = name}).value());
    }
    json.tests.push_back(std::move(test));
  }
  for (const Measurement& row : rows) {
    const bool is_written = row.split == Split::test && row.axis == first_axis &&
                            is_first_metric(row.metric) &&
                            std::ranges::find(whole, row.x) != whole.end();
    if (is_written) continue;
    json.rows.push_back({{"split", to_string(row.split)},
                         {"axis", row.axis},
                         {"x", row.x},
                         {"metric", row.metric},
                         {"value", json_number(row.value)}});
  }
  return json;
}

std::vector<Measurement> rows_from_json(const nlohmann::json& line, const std::string& where) {
  std::vector<Measurement> rows;
  RowReader tests(where + ": tests", rows);
  for (const auto& test : line.value("tests", nlohmann::json::array())) {
    const JsonFields fields = tests.fields(test);
    const double c = fields.number(std::string(first_axis));
    tests.expect(c > 0, fmt::format("c = {}", c), "a scale above 0");
    for (const std::string_view name : first_metrics) {
      const std::string metric(name);
      tests.add({Split::test, std::string(first_axis), c, metric, fields.number(metric)});
    }
  }
  RowReader others(where + ": rows", rows);
  for (const auto& row : line.value("rows", nlohmann::json::array())) {
    const JsonFields fields = others.fields(row);
    others.add({split_from(fields.text("split")), fields.text("axis"), fields.number("x"),
                fields.text("metric"), fields.number("value")});
  }
  return rows;
}

}  // namespace posattn

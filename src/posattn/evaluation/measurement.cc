#include "posattn/evaluation/measurement.h"

#include <algorithm>

#include "posattn/base/enum_names.h"
#include "posattn/base/error.h"
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {
namespace {

constexpr EnumNames<Split, 3> split_names = {
    {{Split::train, "train"}, {Split::validation, "validation"}, {Split::test, "test"}}};

auto is_at(const MeasuredPlace& place) {
  return [place](const Measurement& row) {
    return row.split == place.split && row.x == place.x && row.metric == place.metric &&
           row.axis == place.axis;
  };
}

template <class T>
void add_new(std::vector<T>& all, const T& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

}  // namespace

std::string_view to_string(Split split) { return name_of(split_names, split); }
Split split_from(std::string_view name) {
  return value_of(split_names, ExitCode::data, "split", name);
}

std::optional<double> find_value(std::span<const Measurement> rows, const MeasuredPlace& place) {
  const Metric* metric = known_metric(place.metric);
  if (metric != nullptr && metric->is_derived()) {
    if (!metric->exists_on(place.axis)) return std::nullopt;
    MeasuredPlace source = place;
    source.metric = metric->derived_from;
    const std::optional<double> value = find_value(rows, source);
    return value ? std::optional(metric->derive(*value, place.x)) : std::nullopt;
  }
  const auto at = std::ranges::find_if(rows, is_at(place));
  return at == rows.end() ? std::nullopt : std::optional(at->value);
}

void set_value(std::vector<Measurement>& rows, const MeasuredPlace& place, double value) {
  const auto at = std::ranges::find_if(rows, is_at(place));
  if (at != rows.end()) {
    at->value = value;
  } else {
    rows.push_back(
        {place.split, std::string(place.axis), place.x, std::string(place.metric), value});
  }
}

std::vector<double> tested_values(std::span<const Measurement> rows, std::string_view axis) {
  std::vector<double> values;
  for (const Measurement& row : rows) {
    if (row.split == Split::test && row.axis == axis) add_new(values, row.x);
  }
  return values;
}

std::vector<std::string> tested_axes(std::span<const Measurement> rows) {
  std::vector<std::string> axes;
  for (const Measurement& row : rows) {
    if (row.split == Split::test) add_new(axes, row.axis);
  }
  return axes;
}

const Metric& loss_among(std::span<const Measurement> rows) {
  for (const Measurement& row : rows) {
    const Metric* metric = known_metric(row.metric);
    if (metric != nullptr && (metric->is_loss || metric->of_answers)) return *metric;
  }
  return training_loss();
}

const Metric& training_loss_among(std::span<const Measurement> rows) {
  const Metric& tested = loss_among(rows);
  return tested.of_answers ? training_loss(tested.loss) : tested;
}

}  // namespace posattn

// A measurement is a row {run, split, axis, x, metric, value}: what epoch records, the results
// database, recorded runs, curves and figures are made of. Which run, the place of the row says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

enum class Split { train, validation, test };
std::string_view to_string(Split split);
Split split_from(std::string_view name);  // throws Error(data)

struct Measurement {
  Split split = Split::test;
  std::string axis;    // EvaluationAxis::name; "": samples like those of training, x is then 0
  double x = 0;        // on the axis
  std::string metric;  // Metric::name; never of a derived one
  double value = 0;

  bool operator==(const Measurement&) const = default;
};

// What a row is about: all but its value.
struct MeasuredPlace {
  Split split = Split::test;
  std::string_view axis = {};
  double x = 0;
  std::string_view metric;
};

// The value of a place, also of a derived metric; nothing where it was not measured.
std::optional<double> find_value(std::span<const Measurement> rows, const MeasuredPlace& place);

// Replaces what is there of the same place.
void set_value(std::vector<Measurement>& rows, const MeasuredPlace& place, double value);

// Every x on the axis that was tested, and every axis, in the order of the rows.
std::vector<double> tested_values(std::span<const Measurement> rows, std::string_view axis);
std::vector<std::string> tested_axes(std::span<const Measurement> rows);

// The loss that was measured, or the error of written answers; squared error where none was.
const Metric& loss_among(std::span<const Measurement> rows);
// The loss of training that goes with it: where answers are written, tests do not measure that.
const Metric& training_loss_among(std::span<const Measurement> rows);

}  // namespace posattn

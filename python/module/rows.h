// Rows of measurements as columns for NumPy.
#pragma once

#include <vector>

#include "arrays.h"
#include "posattn/evaluation/measurement.h"

namespace posattn::python {

// {"split": [...], "axis": [...], "x": array, "metric": [...], "value": array}
inline py::dict columns_of(const std::vector<Measurement>& rows) {
  py::list splits, axes, metrics;
  std::vector<double> xs, values;
  for (const Measurement& row : rows) {
    splits.append(std::string(to_string(row.split)));
    axes.append(row.axis);
    metrics.append(row.metric);
    xs.push_back(row.x);
    values.push_back(row.value);
  }
  const auto count = static_cast<int64_t>(rows.size());
  py::dict columns;
  columns["split"] = splits;
  columns["axis"] = axes;
  columns["x"] = array_of({count}, std::move(xs));
  columns["metric"] = metrics;
  columns["value"] = array_of({count}, std::move(values));
  return columns;
}

}  // namespace posattn::python

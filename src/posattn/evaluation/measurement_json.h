// Rows in JSON lines (metrics.jsonl, runs.jsonl). Tests in value ranges keep the shape of 0.1.0,
//   "tests": [{"c": 2.0, "mse": 0.1, "mse_over_c2": 0.025, "accuracy": 1.0}]
// (recorded runs leave out what is derived); everything that it cannot hold is a row:
//   "rows": [{"split": "test", "axis": "length", "x": 16.0, "metric": "mse", "value": 0.1}]
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "posattn/evaluation/measurement.h"

namespace posattn {

struct RowsAsJson {
  nlohmann::ordered_json tests, rows;  // arrays; each row is in one of them
};
RowsAsJson rows_to_json(std::span<const Measurement> rows, bool with_derived);

// The rows of a line's "tests" and "rows", each of which may be missing. Throws Error(data), which
// begins with `where`, for another shape, for impossible values and for a place that comes twice.
std::vector<Measurement> rows_from_json(const nlohmann::json& line, const std::string& where);

}  // namespace posattn

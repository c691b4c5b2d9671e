// Numbers in JSON files of results. JSON has finite numbers alone: NaN is null, and an infinite one
// the text "inf" or "-inf", so that what is written is what is read again.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace posattn {

inline nlohmann::ordered_json json_number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// Reads nlohmann::json or ordered_json; throws its type_error for what is no number.
template <class Json>
double number_from_json(const Json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return json.template get<double>();
}

}  // namespace posattn

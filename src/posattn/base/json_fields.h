// The values of a JSON object that stands in a file. What is missing or of another kind is an
// Error(data) that names the place and the key.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace posattn {

class JsonFields {
 public:
  // `where` names the object in errors ("runs/a/metrics.jsonl:3"). Throws where it is no object.
  // `object` must outlive this.
  JsonFields(const nlohmann::json& object, std::string where);

  bool has(const std::string& key) const { return object_.contains(key); }
  const nlohmann::json& at(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;  // as json_number writes it
  std::string text(const std::string& key) const;
  std::map<std::string, std::string> texts(const std::string& key) const;  // an object of them

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string where_;
};

// JSON from outside, parsed strictly: duplicate keys (which parsers read differently) and deep
// nesting are refused. Throws Error(data) that says what is wrong and where. `what` names the text
// in the error ("header of model.safetensors").
nlohmann::json parse_strict_json(std::string_view text, std::string_view what);

// Numbers in JSON files of results. JSON has only finite numbers, so NaN is written as null and
// infinity as the text "inf" or "-inf". Reading gives back the number that was written.
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

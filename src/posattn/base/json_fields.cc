#include "posattn/base/json_fields.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/json_number.h"

namespace posattn {

JsonFields::JsonFields(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) {
    throw Error(ExitCode::data, fmt::format("{}: {}", where_, object.type_name()),
                "an object of keys and values");
  }
}

const nlohmann::json& JsonFields::at(const std::string& key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) {
    throw Error(ExitCode::data, fmt::format("{}: '{}' is missing", where_, key));
  }
  return *found;
}

int64_t JsonFields::integer(const std::string& key) const {
  if (!at(key).is_number_integer()) refuse(key, "a whole number");
  return at(key).get<int64_t>();
}

double JsonFields::number(const std::string& key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number() && !value.is_null() && value != "inf" && value != "-inf") {
    refuse(key, "a number");
  }
  return number_from_json(value);
}

std::string JsonFields::text(const std::string& key) const {
  if (!at(key).is_string()) refuse(key, "text");
  return at(key).get<std::string>();
}

std::map<std::string, std::string> JsonFields::texts(const std::string& key) const {
  std::map<std::string, std::string> result;
  const JsonFields inside(at(key), where_ + ": " + key);
  for (const auto& [name, value] : at(key).items()) result[name] = inside.text(name);
  return result;
}

void JsonFields::refuse(const std::string& key, const std::string& expected) const {
  constexpr size_t most_shown = 60;
  std::string value = at(key).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (value.size() > most_shown) value = value.substr(0, most_shown) + "...";
  throw Error(ExitCode::data, fmt::format("{}: '{}' is {}", where_, key, value), expected);
}

}  // namespace posattn

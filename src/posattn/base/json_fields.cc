#include "posattn/base/json_fields.h"

#include <fmt/format.h>

#include <set>

#include "posattn/base/error.h"

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

using nlohmann::json;

nlohmann::json parse_strict_json(std::string_view text, std::string_view what) {
  constexpr int depth_limit = 32;
  std::vector<std::set<std::string>> keys;  // of every object still open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > depth_limit) {
      throw Error(ExitCode::data, fmt::format("{}: nested too deeply", what),
                  fmt::format("at most {} levels", depth_limit));
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw Error(ExitCode::data, fmt::format("{}: key '{}' appears twice", what, key),
                    "every key once");
      }
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::parse_error& error) {
    throw Error(ExitCode::data, fmt::format("{}: not valid JSON at byte {}", what, error.byte));
  } catch (const json::out_of_range&) {
    throw Error(ExitCode::data, fmt::format("{}: not valid JSON (a number is out of range)", what));
  }
}

}  // namespace posattn

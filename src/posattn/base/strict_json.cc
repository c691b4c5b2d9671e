#include "posattn/base/strict_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "posattn/base/error.h"

namespace posattn {

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

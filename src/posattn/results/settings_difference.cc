#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/results/manifest.h"

namespace posattn {

nlohmann::json read_settings(std::string_view json, const std::string& what) {
  nlohmann::json settings = parse_strict_json(json, what);
  if (!settings.is_object()) throw Error(ExitCode::data, what + " is no object");
  if (!settings.contains("precision")) {
    settings["precision"] = "fp32";
    settings["device"] = "cpu";
  }
  return settings;
}

std::string settings_difference(std::string_view there, std::string_view here,
                                const std::vector<std::string>& neutral) {
  constexpr std::size_t most_shown = 3;
  const nlohmann::json stored = read_settings(there, "the stored configuration");
  const nlohmann::json wanted = read_settings(here, "the configuration");
  std::set<std::string> keys;
  for (const auto& item : stored.items()) keys.insert(item.key());
  for (const auto& item : wanted.items()) keys.insert(item.key());
  std::vector<std::string> differences;
  for (const std::string& key : keys) {
    if (std::ranges::count(neutral, key) > 0) continue;
    const auto value_in = [&](const nlohmann::json& object) {
      return object.contains(key) ? object[key].dump() : std::string("absent");
    };
    const std::string stored_value = value_in(stored), wanted_value = value_in(wanted);
    if (stored_value != wanted_value) {
      differences.push_back(
          fmt::format("{} is {} there, {} here", key, stored_value, wanted_value));
    }
  }
  if (differences.size() > most_shown) {
    const std::size_t more = differences.size() - most_shown;
    differences.resize(most_shown);
    differences.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

}  // namespace posattn

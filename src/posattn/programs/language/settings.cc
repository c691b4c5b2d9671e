#include "posattn/programs/language/settings.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"

namespace posattn {

Settings parse_settings(std::string_view text) {
  Settings settings;
  if (text.empty()) return settings;
  for (const std::string_view part : split_at_commas(text)) {
    const size_t sign = part.find('=');
    if (sign == std::string_view::npos || sign == 0) {
      throw Error(ExitCode::usage, fmt::format("--set '{}'", text.substr(0, 60)),
                  "NAME=NUMBER, several with commas between them, as K=16,q=4");
    }
    const std::string name(part.substr(0, sign));
    const double value = parse_number(part.substr(sign + 1), "--set " + name);
    if (!settings.emplace(name, value).second) {
      throw Error(ExitCode::usage, fmt::format("--set gives '{}' twice", name.substr(0, 60)),
                  "each parameter once");
    }
  }
  return settings;
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

std::string to_text(const ProgramParameter& parameter) {
  std::string text = fmt::format("{} = {}", parameter.name, parameter.value);
  if (parameter.low) text += fmt::format(" ({} to {})", *parameter.low, *parameter.high);
  return text;
}

}  // namespace posattn

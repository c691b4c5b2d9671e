#include "posattn/programs/messages/routing.h"

#include <array>
#include <utility>

#include "posattn/base/error.h"

namespace posattn {
namespace {

constexpr std::array<std::pair<Routing, std::string_view>, 5> names = {{
    {Routing::automatic, "auto"},
    {Routing::by_position, "static"},
    {Routing::gather, "gather"},
    {Routing::sort, "sort"},
    {Routing::benes, "benes"},
}};

}  // namespace

std::string_view to_string(Routing routing) {
  for (const auto& [value, name] : names) {
    if (value == routing) return name;
  }
  return "";
}

Routing parse_routing(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [value, of_value] : names) {
    if (of_value == name) return value;
    known.emplace_back(of_value);
  }
  throw unknown_name(ExitCode::usage, "routing", name, known);
}

}  // namespace posattn

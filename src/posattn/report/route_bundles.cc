#include "posattn/report/route_bundles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace posattn {
namespace {

// A comparator, min(x, p) on some processors and max(x, p) on the others, reads p a second time
// where it keeps the minimum (Kind::exchange).
bool is_second_read(const Round& round, size_t receive) {
  return std::ranges::any_of(round.instructions, [&](const Instruction& instruction) {
    if (instruction.kind != Expression::Kind::exchange) return false;
    const Instruction& choice = round.instructions[static_cast<size_t>(instruction.operands[2])];
    return choice.kind == Expression::Kind::received &&
           static_cast<size_t>(choice.index) == receive;
  });
}

}  // namespace

std::vector<RouteBundle> route_bundles(const Round& round) {
  std::vector<RouteBundle> bundles;
  for (size_t i = 0; i < round.receives.size(); ++i) {
    const Receive& receive = round.receives[i];
    auto bundle = std::ranges::find_if(
        bundles, [&](const RouteBundle& other) { return *other.route == receive.route; });
    if (bundle == bundles.end()) bundle = bundles.insert(bundle, {&receive.route, {}, {}});
    bundle->names.push_back(receive.name + (is_second_read(round, i) ? " again" : ""));
    bundle->words.push_back(receive.word);
  }
  return bundles;
}

std::string reads_text(const std::vector<std::string>& names) {
  const bool second =
      std::ranges::all_of(names, [](const std::string& name) { return name.ends_with(" again"); });
  return fmt::format("{}reads {}", second ? "second head: " : "", fmt::join(names, ", "));
}

}  // namespace posattn

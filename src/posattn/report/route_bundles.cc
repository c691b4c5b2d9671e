#include "posattn/report/route_bundles.h"

#include <algorithm>

namespace posattn {
namespace {

// min(x, p) or max(x, p) reads p a second time where the minimum is wanted (Kind::exchange).
bool chooses_minimum(const Round& round, size_t receive) {
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
    bundle->names.push_back(chooses_minimum(round, i) ? receive.name + " again: the minimum stays"
                                                      : receive.name);
    bundle->words.push_back(receive.word);
  }
  return bundles;
}

}  // namespace posattn

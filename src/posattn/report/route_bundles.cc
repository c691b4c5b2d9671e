#include "posattn/report/route_bundles.h"

#include <algorithm>

#include "posattn/report/comparators.h"

namespace posattn {

std::vector<RouteBundle> route_bundles(const Round& round) {
  const std::vector<Exchange> exchanges = exchanges_of(round);
  std::vector<RouteBundle> bundles;
  for (size_t i = 0; i < round.receives.size(); ++i) {
    if (std::ranges::count(exchanges, i, &Exchange::lowering) > 0) continue;
    const Receive& receive = round.receives[i];
    auto bundle = std::ranges::find_if(
        bundles, [&](const RouteBundle& other) { return *other.route == receive.route; });
    if (bundle == bundles.end()) bundle = bundles.insert(bundle, {&receive.route, {}, {}});
    bundle->names.push_back(receive.name);
    bundle->words.push_back(receive.word);
  }
  return bundles;
}

}  // namespace posattn

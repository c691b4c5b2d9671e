#include "posattn/report/drawn_rounds.h"

#include <algorithm>

namespace posattn {
namespace {

const Instruction& operand(const Round& round, const Instruction& instruction, size_t k) {
  return round.instructions[static_cast<size_t>(instruction.operands[k])];
}

}  // namespace

bool Exchange::keeps_own(const Round& round, int processor) const {
  return round.receives[other].route.sources[processor] == processor;
}

bool Exchange::keeps_minimum(const Round& round, int processor) const {
  return round.receives[lowering].route.sources[processor] ==
         round.receives[other].route.sources[processor];
}

std::vector<Exchange> exchanges_of(const Round& round) {
  using Kind = Expression::Kind;
  std::vector<Exchange> found;
  for (const Update& update : round.updates) {
    const Instruction& exchange = round.instructions[static_cast<size_t>(update.instruction)];
    if (exchange.kind != Kind::exchange) continue;
    const Instruction &own = operand(round, exchange, 0), &p = operand(round, exchange, 1),
                      &q = operand(round, exchange, 2);
    if (own.kind != Kind::word || own.index != update.word || p.kind != Kind::received ||
        q.kind != Kind::received) {
      continue;
    }
    found.push_back({.word = update.word,
                     .other = static_cast<size_t>(p.index),
                     .lowering = static_cast<size_t>(q.index)});
  }
  return found;
}

std::vector<Comparator> comparators_of(const Round& round, int processors) {
  const std::vector<Exchange> exchanges = exchanges_of(round);
  if (round.updates.size() != 1 || exchanges.size() != 1) return {};
  const Exchange& exchange = exchanges.front();
  const std::vector<int32_t>& partners = round.receives[exchange.other].route.sources;
  std::vector<Comparator> comparators;
  for (int i = 0; i < processors; ++i) {
    const int partner = partners[i];
    if (partner == i) continue;
    const bool pair = partner < processors && partners[partner] == i &&
                      exchange.keeps_minimum(round, i) != exchange.keeps_minimum(round, partner);
    if (!pair) return {};
    if (exchange.keeps_minimum(round, i)) comparators.push_back({i, partner});
  }
  return comparators;
}

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

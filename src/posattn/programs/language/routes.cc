#include <fmt/format.h>

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {
namespace {

// Where every processor reads every other.
constexpr int64_t most_weighted_processors = 4096;

double weight_at(const Term& term, const Scope& scope, Point point, Arithmetic& arithmetic) {
  point.wants_real = true;
  const Number number = arithmetic.evaluate(term, scope, point);
  if (number.kind != Number::Kind::truth) return number.value;
  throw arithmetic.source().error(term.position, "a condition as weight", "a number",
                                  "write (1 if CONDITION else 0), or ... over j where CONDITION");
}

}  // namespace

Route route_of(const ReceiveStatement& statement, int processors, const Scope& scope,
               Arithmetic& arithmetic) {
  Route route;
  route.sources.reserve(static_cast<size_t>(processors));
  for (int i = 0; i < processors; ++i) {
    int32_t from = processors;
    for (const Term& place : statement.places) {
      Point point;
      point.processor = i;
      const Number number = arithmetic.evaluate(place, scope, point);
      if (number.kind != Number::Kind::whole) {
        throw arithmetic.source().error(place.position, "a place that is no whole number",
                                        "the index of a processor");
      }
      if (number.value < 0 || number.value >= processors) continue;
      from = static_cast<int32_t>(number.value);
      break;
    }
    route.sources.push_back(from);
  }
  return route;
}

Route route_of(const SumStatement& statement, int processors, Position position, const Scope& scope,
               Arithmetic& arithmetic) {
  if (processors > most_weighted_processors) {
    throw arithmetic.source().error(position, fmt::format("a sum over {} processors", processors),
                                    fmt::format("at most {}", most_weighted_processors));
  }
  Route route;
  for (int i = 0; i < processors; ++i) {
    auto& row = route.weighted.emplace_back();
    for (int j = 0; j < processors; ++j) {
      arithmetic.spend(1, position);
      const Point point{i, &statement.variable, j, false};
      if (statement.condition && !arithmetic.truth(*statement.condition, scope, point)) continue;
      const double weight =
          statement.weight ? weight_at(*statement.weight, scope, point, arithmetic) : 1;
      if (weight != 0) row.emplace_back(j, weight);
    }
  }
  return route;
}

std::vector<Route> one_by_one(const Route& route, int processors) {
  size_t most = 1;
  for (const auto& row : route.weighted) most = std::max(most, row.size());
  std::vector<Route> routes(most);
  for (size_t k = 0; k < most; ++k) {
    for (const auto& row : route.weighted) {
      routes[k].sources.push_back(row.empty() ? processors
                                              : row[std::min(k, row.size() - 1)].first);
    }
  }
  return routes;
}

}  // namespace posattn::language

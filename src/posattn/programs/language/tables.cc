#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

NumberTable make_table(const TableStatement& statement, Position position, int processors,
                       const Scope& scope, Arithmetic& arithmetic) {
  NumberTable table;
  table.rows = statement.rows.size();
  table.is_edges = statement.edges;
  table.columns = statement.rows[0].size();
  table.one_row = statement.one_row;
  for (const auto& row : statement.rows) {
    if (row.size() != (statement.edges ? 3 : table.columns) || row.empty()) {
      throw arithmetic.source().error(
          row.empty() ? position : row[0].position, fmt::format("a row of {} numbers", row.size()),
          statement.edges
              ? "edges (u, v, weight)"
              : fmt::format("{}, as in the first row", std::max<size_t>(1, table.columns)));
    }
    for (const Term& term : row) {
      const Number number = arithmetic.evaluate(term, scope, {});
      if (number.kind != Number::Kind::whole) table.whole = false;
      table.numbers.push_back(number.value);
    }
    if (!statement.edges) continue;
    const double* edge = &table.numbers[table.numbers.size() - 3];
    for (const int k : {0, 1}) {
      if (edge[k] == std::floor(edge[k]) && edge[k] >= 0 && edge[k] < processors) continue;
      throw arithmetic.source().error(row[k].position, fmt::format("an edge of node {}", edge[k]),
                                      fmt::format("nodes from 0 to {}", processors - 1));
    }
    const std::pair ends{static_cast<int64_t>(edge[0]), static_cast<int64_t>(edge[1])};
    if (!table.edges.emplace(ends, edge[2]).second) {
      throw arithmetic.source().error(
          row[0].position, fmt::format("a second edge from {} to {}", ends.first, ends.second),
          "each once");
    }
  }
  return table;
}

}  // namespace posattn::language

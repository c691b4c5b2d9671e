#include "posattn/programs/language/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace posattn::language {

NumberTable make_table(const TableStatement& statement, Position position, const Scope& scope,
                       Arithmetic& arithmetic) {
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
    for (const double end : {edge[0], edge[1]}) {
      if (end == std::floor(end) && std::abs(end) < 0x1p53) continue;
      throw arithmetic.source().error(row[0].position, "an edge between no nodes",
                                      "whole numbers u and v");
    }
    table.edges[{static_cast<int64_t>(edge[0]), static_cast<int64_t>(edge[1])}] = edge[2];
  }
  return table;
}

}  // namespace posattn::language

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/limits.h"
#include "posattn/programs/language/arithmetic.h"

namespace posattn {
namespace {

std::string allowed_values(const ProgramParameter& parameter) {
  const char* kind = parameter.whole ? "a whole number" : "a number";
  if (!parameter.low) return kind;
  return fmt::format("{} from {} to {}", kind, *parameter.low, *parameter.high);
}

bool is_allowed(const ProgramParameter& parameter, double value) {
  if (parameter.whole && (value != std::floor(value) || std::abs(value) > whole_limit)) {
    return false;
  }
  return !parameter.low || (value >= *parameter.low && value <= *parameter.high);
}

}  // namespace

ProgramParameter with_setting(ProgramParameter parameter, const Settings& settings) {
  const auto set = settings.find(parameter.name);
  if (set == settings.end()) return parameter;
  if (!is_allowed(parameter, set->second)) {
    throw Error(ExitCode::usage, fmt::format("--set {}={}", parameter.name, set->second),
                allowed_values(parameter));
  }
  parameter.value = set->second;
  return parameter;
}

void refuse_unknown(const Settings& settings, const std::vector<std::string>& known) {
  for (const auto& [name, value] : settings) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (known.empty()) {
      throw Error(ExitCode::usage, fmt::format("--set {}={}", name.substr(0, 60), value),
                  "nothing: the program has no parameters");
    }
    throw unknown_name(ExitCode::usage, "parameter", name, known);
  }
}

namespace language {
namespace {

Number number_meaning(const ProgramParameter& parameter) {
  return parameter.whole ? Number::whole(parameter.value) : Number::real(parameter.value);
}

Number number_of(const Term& term, const Scope& scope, Arithmetic& arithmetic) {
  const Number number = arithmetic.evaluate(term, scope, {});
  if (number.kind != Number::Kind::truth) return number;
  throw arithmetic.source().error(term.position, "a condition as parameter", "a number");
}

ProgramParameter default_of(const ParameterLine& line, const Scope& scope, Arithmetic& arithmetic) {
  const Number value = number_of(line.value, scope, arithmetic);
  ProgramParameter parameter;
  parameter.name = line.name;
  parameter.value = value.value;
  parameter.whole = value.kind == Number::Kind::whole;
  if (line.low) {
    parameter.low = number_of(*line.low, scope, arithmetic).value;
    parameter.high = number_of(*line.high, scope, arithmetic).value;
  }
  if (is_allowed(parameter, parameter.value)) return parameter;
  throw arithmetic.source().error(line.value.position,
                                  fmt::format("the default {} = {}", line.name, parameter.value),
                                  allowed_values(parameter));
}

}  // namespace

std::vector<ProgramParameter> parameters_of(const SyntaxTree& tree, const Settings& settings,
                                            Arithmetic& arithmetic) {
  std::vector<std::string> known;
  for (const ParameterLine& line : tree.parameters) known.push_back(line.name);
  refuse_unknown(settings, known);
  std::vector<ProgramParameter> parameters;
  Scope scope;
  for (const ParameterLine& line : tree.parameters) {
    ProgramParameter parameter = with_setting(default_of(line, scope, arithmetic), settings);
    scope.insert_or_assign(line.name, number_meaning(parameter));
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Scope parameter_scope(const std::vector<ProgramParameter>& parameters) {
  Scope scope;
  for (const ProgramParameter& parameter : parameters) {
    scope.insert_or_assign(parameter.name, number_meaning(parameter));
  }
  return scope;
}

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

}  // namespace language
}  // namespace posattn

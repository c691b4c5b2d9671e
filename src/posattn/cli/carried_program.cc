#include "posattn/cli/carried_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/cli/program_input.h"

namespace posattn {

CarriedProgram carried_program(const Model& model, const std::string& path) {
  CarriedProgram carried;
  carried.program = embedded_program(model, path);
  carried.routed = route_messages(carried.program, embedded_routing(model));
  return carried;
}

void check_rows(const CarriedProgram& carried, Table& table, const std::string& name) {
  const StaticProgram& program = carried.program;
  const size_t n = program.processors, own = program.inputs.size();
  const size_t all = carried.routed.program.inputs.size();
  const auto columns = static_cast<size_t>(table.columns);
  if (columns != n * own && columns != n * all) return;
  const size_t given = columns / n;
  std::vector<float> rows;
  for (size_t k = 0; k < table.values.size(); ++k) {
    if (k % given < own) rows.push_back(table.values[k]);
  }
  for (int64_t r = 0; r < table.rows; ++r) {
    const auto first = rows.begin() + r * static_cast<int64_t>(n * own);
    const std::vector<double> row(first, first + static_cast<int64_t>(n * own));
    const std::string place = fmt::format("{}, row {}: ", name, r + 1);
    if (const std::optional<InputFault> fault = input_fault(program, row)) {
      throw Error(ExitCode::data, place + fault->problem, fault->expected);
    }
    try {
      run_static<double>(program, row, 1);
    } catch (const Error& error) {
      throw Error(error.code(), place + error.problem(), error.expected(), error.hint());
    }
  }
  if (own == all) return;
  std::vector<float> complete = routed_inputs<float>(program, carried.routed, rows, table.rows);
  if (given == all && complete != table.values) {
    const auto wrong = std::ranges::mismatch(complete, table.values).in1 - complete.begin();
    throw Error(ExitCode::data,
                fmt::format("{}, row {}: switches that do not carry the row's messages", name,
                            wrong / static_cast<int64_t>(n * all) + 1),
                "those of this input", "leave them out: the program in the file finds them");
  }
  table.values = std::move(complete);
  table.columns = static_cast<int64_t>(n * all);
}

}  // namespace posattn

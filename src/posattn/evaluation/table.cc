#include "posattn/evaluation/table.h"

#include <fmt/format.h>

#include "posattn/base/error.h"

namespace posattn {

void check_one_row(const Table& table, std::string_view name) {
  if (table.rows == 1) return;
  throw Error(ExitCode::data, fmt::format("{}: {} rows", name, table.rows), "one row");
}

}  // namespace posattn

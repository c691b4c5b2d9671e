#include "posattn/evaluation/table.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/file.h"

namespace posattn {
namespace {

constexpr uint64_t largest_file = uint64_t{4} << 30;

}  // namespace

void check_one_row(const Table& table, std::string_view name) {
  if (table.rows == 1) return;
  throw Error(ExitCode::data, fmt::format("{}: {} rows", name, table.rows), "one row");
}

Table parse_table(std::string_view bytes, std::string_view name, int64_t expected_columns,
                  const RowPattern& pattern) {
  return looks_like_npy(bytes) ? parse_npy(bytes, name, expected_columns, pattern)
                               : parse_csv(bytes, name, expected_columns, pattern);
}

std::string read_bytes(const std::filesystem::path& path) {
  return read_input_file(path, largest_file);
}

}  // namespace posattn

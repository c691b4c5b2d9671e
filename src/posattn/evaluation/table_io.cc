#include "posattn/evaluation/table_io.h"

#include "posattn/base/file.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/npy.h"

namespace posattn {
namespace {

constexpr uint64_t largest_file = uint64_t{4} << 30;

}  // namespace

Table parse_table(std::string_view bytes, std::string_view name, int64_t expected_columns,
                  const RowPattern& pattern) {
  return looks_like_npy(bytes) ? parse_npy(bytes, name, expected_columns, pattern)
                               : parse_csv(bytes, name, expected_columns, pattern);
}

std::string read_bytes(const std::filesystem::path& path) {
  return read_input_file(path, largest_file);
}

}  // namespace posattn

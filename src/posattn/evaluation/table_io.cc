#include "posattn/evaluation/table_io.h"

#include <fmt/format.h>

#include <array>

#include "posattn/base/error.h"
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
  return read_text_file(path, largest_file);
}

std::string read_bytes(std::istream& stream, std::string_view name) {
  std::string bytes;
  std::array<char, 65536> chunk;
  while (stream.read(chunk.data(), chunk.size()), stream.gcount() > 0) {
    bytes.append(chunk.data(), stream.gcount());
    if (bytes.size() > largest_file) {
      throw Error(ExitCode::data, fmt::format("{}: more than {} bytes", name, largest_file),
                  "a smaller table", "split the rows over several files");
    }
  }
  return bytes;
}

}  // namespace posattn

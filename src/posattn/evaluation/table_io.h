// Tables from outside: NPY or CSV, told apart by content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "posattn/evaluation/table.h"

namespace posattn {

// NPY when it begins with NPY's magic bytes, else CSV; `name` is for messages.
Table parse_table(std::string_view bytes, std::string_view name, int64_t expected_columns = 0,
                  const RowPattern& pattern = {});

// Reads a file, a pipe or "-", standard input. Throws Error(data) for one that is missing or too
// large (4 GiB, of a pipe 1 GiB).
std::string read_bytes(const std::filesystem::path& path);

}  // namespace posattn

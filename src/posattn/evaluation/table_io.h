// Tables in files: NPY or CSV, told apart by content when reading and by name when writing.
#pragma once

#include <filesystem>
#include <istream>
#include <string_view>

#include "posattn/evaluation/table.h"

namespace posattn {

// NPY when it begins with NPY's magic bytes, else CSV; `name` is for messages.
Table parse_table(std::string_view bytes, std::string_view name, int64_t expected_columns = 0,
                  const RowPattern& pattern = {});

// Throws Error(data) for a file that is missing, larger than 4 GiB or not a table.
Table read_table(const std::filesystem::path& path, int64_t expected_columns = 0,
                 const RowPattern& pattern = {});
Table read_table(std::istream& stream, std::string_view name, int64_t expected_columns = 0,
                 const RowPattern& pattern = {});

// Atomically; NPY when the name ends in .npy, else CSV.
void write_table(const std::filesystem::path& path, const Table& table);

}  // namespace posattn

// Files that the build puts into the program (cmake/Embed.cmake), each list by name.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace posattn {

struct EmbeddedFile {
  std::string_view name;  // "sort.par"
  std::string_view text;
};

const std::vector<EmbeddedFile>& embedded_programs();     // programs/*.par
const std::vector<EmbeddedFile>& embedded_experiments();  // experiments/*.toml and published.csv
const std::vector<EmbeddedFile>& embedded_page_assets();  // texts, styles and scripts of report/

// The one of this name, which must exist.
inline std::string_view page_asset(std::string_view name) {
  return std::ranges::find(embedded_page_assets(), name, &EmbeddedFile::name)->text;
}

}  // namespace posattn

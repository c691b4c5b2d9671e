// Files that the build puts into the program (cmake/Embed.cmake), each list by name.
#pragma once

#include <string_view>
#include <vector>

namespace posattn {

struct EmbeddedFile {
  std::string_view name;  // "sort.par"
  std::string_view text;
};

const std::vector<EmbeddedFile>& embedded_programs();     // programs/*.par
const std::vector<EmbeddedFile>& embedded_experiments();  // experiments/*.toml and published.csv
const std::vector<EmbeddedFile>& embedded_step_page();    // report/steps/steps.*

}  // namespace posattn

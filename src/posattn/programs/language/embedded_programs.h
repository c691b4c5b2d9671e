// Files of programs/ that the build embeds into the program.
#pragma once

#include <string_view>
#include <vector>

namespace posattn {

struct EmbeddedProgram {
  std::string_view name;  // "sort.par"
  std::string_view text;
};
const std::vector<EmbeddedProgram>& embedded_programs();  // by name

}  // namespace posattn

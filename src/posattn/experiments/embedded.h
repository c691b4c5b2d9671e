// Files of experiments/ that the build embeds into the program.
#pragma once

#include <string_view>
#include <vector>

namespace posattn {

struct EmbeddedFile {
  std::string_view name;  // "value-range.toml"
  std::string_view text;
};
const std::vector<EmbeddedFile>& embedded_files();  // by name

}  // namespace posattn

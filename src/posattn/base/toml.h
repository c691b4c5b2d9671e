// TOML from outside: the one way in, so that every file has the same limits.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace posattn {

// The file's text. Error(data) when it cannot be read, Error(configuration) above 1 MiB.
std::string read_toml_file(const std::filesystem::path& path);

// Throws Error(configuration) with `name` and the line for what is no TOML, and for dotted keys of
// more than a few parts: each part is a table inside a table, which the library frees recursively.
toml::table parse_toml(std::string_view text, const std::string& name, const std::string& expected);

}  // namespace posattn

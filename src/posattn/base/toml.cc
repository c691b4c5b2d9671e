#include "posattn/base/toml.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/file.h"

namespace posattn {
namespace {

constexpr uint64_t largest_file = 1 << 20;
// Values nest to a depth of 256 in the library, each with a key of its own: 4,096 tables at most.
constexpr int most_parts = 16;

// The position after the string that begins at `at` (with a quote), or of the line's end where it
// is not closed: the library stops there.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool several_lines = text.substr(at).starts_with(three);
  for (at += several_lines ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (several_lines && text.substr(at).starts_with(three)) {
      at += 3;  // up to two quotes before the closing three belong to the string
      for (int more = 0; more < 2 && text.substr(at).starts_with(quote); ++more) ++at;
      return at;
    } else if (!several_lines && text[at] == quote) {
      return at + 1;
    } else if (!several_lines && text[at] == '\n') {
      return at;
    }
  }
  return text.size();
}

// The line of the first key with too many parts, or 0. Dots count from the last character that
// ends a key or value; those of strings and comments do not.
int64_t line_of_long_key(std::string_view text) {
  int parts = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size() - 1);
    if (std::string_view("\n#=,[]{}").find(c) != std::string_view::npos) parts = 1;
    if (c == '.' && ++parts > most_parts)
      return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    ++at;
  }
  return 0;
}

}  // namespace

std::string read_toml_file(const std::filesystem::path& path) {
  std::error_code none;
  const uint64_t size = std::filesystem::file_size(path, none);  // an error for folders, pipes
  if (!none && size > largest_file) {
    throw Error(ExitCode::configuration,
                fmt::format("'{}' is too large ({} bytes)", path.string(), size),
                fmt::format("at most {} bytes", largest_file));
  }
  return read_input_file(path, largest_file);
}

toml::table parse_toml(std::string_view text, const std::string& name,
                       const std::string& expected) {
  if (const int64_t line = line_of_long_key(text)) {
    throw Error(ExitCode::configuration, fmt::format("{}:{}: a key of too many parts", name, line),
                fmt::format("at most {}, separated by dots", most_parts));
  }
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{}:{} is not TOML: {}", name, error.source().begin.line, error.description()),
        expected);
  }
}

}  // namespace posattn

#include "posattn/cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"

namespace posattn {

CLI::Option& add_output_option(CLI::App& command, std::string& path, const std::string& what,
                               const std::string& text) {
  return *option(command, "-o,--out,--output", path, text, what);
}

void check_ending(std::string_view flag, std::string_view path, std::string_view ending) {
  const std::string found = std::filesystem::path(path).extension().string();
  if (found.empty() || found == ending) return;
  throw Error(ExitCode::usage, fmt::format("{} '{}'", flag, path),
              fmt::format("a name that ends in {}, or - for standard output", ending));
}

void refuse_with_standard_output(std::string_view path, bool given, std::string_view flag) {
  if (!given || !is_standard_output(path)) return;
  throw Error(ExitCode::usage, fmt::format("{} with the file on standard output", flag),
              "one of them", fmt::format("leave {} out, or name a file", flag));
}

void write_result(const std::string& path, std::string_view text) {
  if (is_standard_output(path)) {
    write_output_bytes(text);
  } else {
    write_output_file(path, std::as_bytes(std::span(text)));
  }
}

void write_result(const std::string& path, std::span<const std::byte> bytes) {
  write_result(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void say_written(std::string_view what, std::string_view path) {
  if (!path.empty() && !is_standard_output(path))
    write_output(fmt::format("{} in {}\n", what, path));
}

}  // namespace posattn

// The one file that a command writes: -o, --out and --output mean the same everywhere, and "-" is
// standard output, which then holds nothing else.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posattn {

CLI::Option& add_output_option(CLI::App& command, std::string& path, const std::string& what,
                               const std::string& text);

// Opened anew, /dev/stdout would be a file written from its beginning.
inline bool is_standard_output(std::string_view path) {
  return path == "-" || path == "/dev/stdout";
}

// Throws Error(usage) where the file's name has another ending than what it will be, as ".svg":
// most programs go by it. No ending at all, as of standard output, is right.
void check_ending(std::string_view flag, std::string_view path, std::string_view ending);

// Throws Error(usage) where standard output would have to hold the file and what `flag` prints.
void refuse_with_standard_output(std::string_view path, bool given, std::string_view flag);

void write_result(const std::string& path, std::string_view text);
void write_result(const std::string& path, std::span<const std::byte> bytes);

// "figure in scale.svg", the last line of what a command says that wrote one; nothing where there
// is no path, or standard output holds it.
void say_written(std::string_view what, std::string_view path);

}  // namespace posattn

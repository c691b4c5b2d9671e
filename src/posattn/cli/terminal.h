// Writing to a terminal or a pipe: colour only where it is wanted, and an error for output that is
// lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posattn {

using Json = nlohmann::ordered_json;  // keeps the order of keys, which is that of help and docs

// A terminal that can move its cursor (TERM is not "dumb").
bool is_terminal(std::FILE* stream);

// `text` in red on a terminal, plain elsewhere and when NO_COLOR is set.
std::string in_red(std::string_view text, std::FILE* stream);

int terminal_columns(std::FILE* stream);

// Columns that UTF-8 text takes, for text without wide or combining characters.
int display_width(std::string_view text);

// Thrown when nobody reads standard output any more (`posattn tasks | head -1`): the program ends
// with ExitCode::failed and prints nothing.
struct ReaderGone {};

// Writes text or JSON to standard output. Names, files and models may contain characters that a
// terminal acts upon, so these are escaped (printable). A full disk is Error(failed), a closed
// pipe ReaderGone, at the latest when flushing.
void write_output(std::string_view text);
void flush_output();

// A document as --json prints it. Paths need not be UTF-8, so that what is not is replaced.
std::string json_text(const Json& document);

// The bytes of a file to standard output, as they are.
void write_output_bytes(std::string_view bytes);

// Writes a line to standard error, escaped too. Failures are ignored: they could not be shown.
void write_notice(std::string_view line);

// Makes descriptors 0 to 2 refer to something, so that a file opened later never takes the place of
// a closed standard output, and turns SIGPIPE and SIGXFSZ into write errors that can be reported.
void secure_standard_streams();

// Makes Ctrl-C a request: long work looks at the flag, saves its state and returns. From now on the
// first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the process at once. A signal that
// was ignored (nohup) stays ignored.
const std::atomic<bool>& catch_interrupts();

// The one file that a command writes: -o, --out and --output mean the same everywhere, and "-" is
// standard output, which then holds nothing else.

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

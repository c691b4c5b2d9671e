#include "posattn/cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/cli/commands.h"

namespace posattn {
namespace {

[[noreturn]] void throw_output_error(int error_number) {
  if (error_number == EPIPE) throw ReaderGone();
  throw Error(ExitCode::failed,
              fmt::format("cannot write to standard output: {}", std::strerror(error_number)), "",
              "the output above is not complete");
}

bool variable_is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

void note_interrupt(int /*signal*/) { interrupted = true; }

void catch_one(int number) {
  struct sigaction previous {};
  if (sigaction(number, nullptr, &previous) == 0 && previous.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  (void)sigaction(number, &action, nullptr);
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

std::string in_red(std::string_view text, std::FILE* stream) {
  if (!is_terminal(stream) || variable_is_set("NO_COLOR")) return std::string(text);
  return fmt::format("\x1b[1;31m{}\x1b[0m", text);
}

int terminal_columns(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

int display_width(std::string_view text) {
  int width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

void write_output(std::string_view text) { write_output_bytes(printable(text, true)); }

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_output_bytes(std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) throw_output_error(errno);
}

void write_notice(std::string_view line) {
  const std::string text = printable(line, true) + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw_output_error(errno != 0 ? errno : EIO);
  }
}

void secure_standard_streams() {
  // The lowest free descriptor is taken, so in order. Opened for reading only, a closed standard
  // output still fails when written to.
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      const int mode = descriptor == 2 ? O_WRONLY : O_RDONLY;
      if (open("/dev/null", mode) == -1) std::_Exit(static_cast<int>(ExitCode::failed));
    }
  }
  for (const int number : {SIGPIPE, SIGXFSZ}) (void)std::signal(number, SIG_IGN);
}

const std::atomic<bool>& catch_interrupts() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) catch_one(number);
  return interrupted;
}

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

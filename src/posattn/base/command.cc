#include "posattn/base/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "posattn/base/error.h"

extern "C" char** environ;  // not every system declares it

namespace posattn {
namespace {

// A file without a name, in memory where the system has such files.
int unnamed_file() {
#ifdef __linux__
  return ::memfd_create("posattn-command", MFD_CLOEXEC);
#else
  std::string name = std::filesystem::temp_directory_path() / "posattn-command-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  ::unlink(name.c_str());
  return descriptor;
#endif
}

// A file that the program writes: unlike a pipe it takes any amount without being read.
class WrittenFile {
 public:
  WrittenFile() : descriptor_(unnamed_file()) {
    if (descriptor_ >= 0) return;
    throw Error(ExitCode::failed,
                fmt::format("cannot make a temporary file: {}", std::strerror(errno)), "",
                "check the limit on open files (ulimit -n)");
  }
  ~WrittenFile() { ::close(descriptor_); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  int descriptor() const { return descriptor_; }

  std::string text() const {
    std::string text;
    std::array<char, 65536> part{};
    ::lseek(descriptor_, 0, SEEK_SET);
    for (ssize_t count = 0; (count = ::read(descriptor_, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int descriptor_;
};

// Standard output goes to `output`, standard error to `messages`, or with -1 to ours.
pid_t start(const std::vector<std::string>& arguments, int output, int messages) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& word : arguments) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  if (messages >= 0) posix_spawn_file_actions_adddup2(&files, messages, STDERR_FILENO);
  // This comes last: `output` may be descriptor 0 when our standard input is closed.
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t process = 0;
  const int problem =
      ::posix_spawnp(&process, pointers[0], &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (problem == 0) return process;
  throw Error(ExitCode::failed,
              fmt::format("cannot start '{}': {}", arguments[0],
                          problem == ENOENT ? "it is not installed" : std::strerror(problem)));
}

std::string wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno == EINTR) continue;
    return fmt::format("was lost track of: {}", std::strerror(errno));
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : fmt::format("ended with exit code {}", code);
}

std::string shell_word(const std::string& word) {
  constexpr const char* harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(harmless) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

CommandEnd run_to_end(const std::vector<std::string>& arguments) {
  const WrittenFile output, messages;
  std::string problem = wait_for(start(arguments, output.descriptor(), messages.descriptor()));
  return {output.text(), messages.text(), std::move(problem)};
}

std::string run_command(const std::vector<std::string>& arguments) {
  const WrittenFile output;
  const std::string problem = wait_for(start(arguments, output.descriptor(), -1));
  if (problem.empty()) return output.text();
  throw Error(ExitCode::failed, fmt::format("'{}' {}", arguments[0], problem), "exit code 0",
              "its own message stands above");
}

std::string shell_command(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    line += (line.empty() ? "" : " ") + shell_word(argument);
  }
  return line;
}

}  // namespace posattn

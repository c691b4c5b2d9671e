#include "posattn/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "posattn/base/error.h"

namespace posattn {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Error no_process(const std::string& program, int problem) {
  return Error(ExitCode::failed,
               fmt::format("cannot start '{}': {}", program, std::strerror(problem)), "",
               "check the limits on processes and open files (ulimit -a)");
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
  int to_child[2] = {-1, -1}, from_child[2] = {-1, -1};
  if (::pipe2(to_child, O_CLOEXEC) != 0) throw no_process(arguments[0], errno);
  if (::pipe2(from_child, O_CLOEXEC) != 0) {
    const int problem = errno;
    ::close(to_child[0]);
    ::close(to_child[1]);
    throw no_process(arguments[0], problem);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  const int problem = ::posix_spawn(&process_, arguments[0].c_str(), &actions, nullptr,
                                    pointers_to(arguments).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_descriptor_ = from_child[0];
  output_ = LineReader(output_descriptor_);
  if (problem != 0) {
    process_ = -1;
    ::close(input_);
    ::close(output_descriptor_);
    throw no_process(arguments[0], problem);
  }
}

ChildProcess::~ChildProcess() {
  wait();
  ::close(output_descriptor_);
}

void ChildProcess::write(std::string_view line) {
  if (input_ >= 0) (void)write_line(input_, line);
}

std::string ChildProcess::wait() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
  if (process_ < 0) return "ended";
  // What it still says must not keep it from ending.
  while (!output_.ended()) (void)output_.read(-1);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace posattn

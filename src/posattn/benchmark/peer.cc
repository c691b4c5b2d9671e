#include "posattn/benchmark/peer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "posattn/base/error.h"

extern char** environ;

namespace posattn {

namespace fs = std::filesystem;

std::string run_command(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ExitCode::failed, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  std::array<char, 4096> part{};
  ssize_t count = 0;
  while (problem == 0 && (count = read(ends[0], part.data(), part.size())) > 0) {
    output.append(part.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  if (problem != 0) {
    throw Error(ExitCode::failed, "cannot start '" + arguments[0] + "': " + std::strerror(problem));
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(ExitCode::failed, "'" + arguments[0] + "' failed", "exit code 0",
                "its own message stands above");
  }
  return output;
}

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

fs::path find_peer_script() {
  const fs::path program = this_program();
  // build/PRESET/posattn in a source tree; bin/posattn of an installation.
  const fs::path places[] = {
      program.parent_path() / "../../bench/peer_torch.py",
      program.parent_path() / "../share/posattn/bench/peer_torch.py",
  };
  for (const fs::path& place : places) {
    if (fs::exists(place)) return fs::canonical(place);
  }
  throw Error(ExitCode::data, "bench/peer_torch.py not found beside " + program.string(),
              "a build folder inside the source tree, or an installation",
              "run the binary in build/release of a checkout");
}

}  // namespace posattn
